"""What the tables of the field say: atlases, region names, and the habits of FreeSurfer, ANTs and ADNI."""
