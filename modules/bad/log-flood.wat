;; SPDX-License-Identifier: Apache-2.0
;; Writes a thousand log lines per packet: all but the allowed ones are left out.
(module
  (import "netserv" "log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 5)
  (data (i32.const 16) "flood")
  (func (export "netserv_abi") (result i32) (i32.const 1))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (i32.const 0))
  (func (export "netserv_process") (param $count i32)
    (local $lines i32)
    (local.set $lines (i32.mul (local.get $count) (i32.const 1000)))
    (loop $again
      (drop (call $log (i32.const 2) (i32.const 16) (i32.const 5)))
      (br_if $again (local.tee $lines (i32.sub (local.get $lines) (i32.const 1)))))))
