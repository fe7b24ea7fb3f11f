"""Tables of many kinds, on which the defaults stand beside plain models and rivals."""
