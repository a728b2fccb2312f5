int embedded_middle() { return 1; }
