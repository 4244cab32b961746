;; SPDX-License-Identifier: Apache-2.0
;; Traps on the first packet that it sees: its packets count as unseen, and it is unloaded.
(module
  (memory (export "memory") 5)
  (func (export "netserv_abi") (result i32) (i32.const 1))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (i32.const 0))
  (func $on_packet (export "netserv_process") (param i32) unreachable))
