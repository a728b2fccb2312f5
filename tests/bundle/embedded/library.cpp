// A library that has a bundle in it, and that the test program is linked to.
extern "C" __attribute__((visibility("default"))) int embedded_library() { return 1; }
