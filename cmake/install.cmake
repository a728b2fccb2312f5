# (install rules follow)
