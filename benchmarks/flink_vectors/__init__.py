"""Values that Flink itself gives, for the tests of functions, operators and casts."""
