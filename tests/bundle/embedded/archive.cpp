int embedded_archive() { return 1; }
