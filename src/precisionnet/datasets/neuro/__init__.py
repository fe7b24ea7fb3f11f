"""Neuroimaging: cortical regions, the table formats of the field, ADNI, and their loaders."""
