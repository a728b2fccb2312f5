// Nothing but a place for the precompiled header of the tests to belong to.
int main() { return 0; }
