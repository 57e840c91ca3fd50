#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ds_plan_fuzz::faults(bytes));
