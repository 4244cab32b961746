;; SPDX-License-Identifier: Apache-2.0
;; Never comes to an end of its start: killed by the watchdog, refused as `stalled`.
(module
  (memory (export "memory") 5)
  (func (export "netserv_abi") (result i32) (i32.const 1))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (loop $again (br $again)) (unreachable))
  (func (export "netserv_process") (param i32)))
