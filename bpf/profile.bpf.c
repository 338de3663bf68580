char license[] __attribute__((section("license"))) = "Dual BSD/GPL";
