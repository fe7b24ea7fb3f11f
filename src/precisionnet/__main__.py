"""``python -m precisionnet``."""

from precisionnet.cli.app import main

if __name__ == "__main__":
    main()
