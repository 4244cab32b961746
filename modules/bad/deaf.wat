;; SPDX-License-Identifier: Apache-2.0
;; Has an inbox for control messages and takes none.
(module
  (import "netserv" "control_receive" (func (param i32 i32) (result i32)))
  (memory (export "memory") 5)
  (func (export "netserv_abi") (result i32) (i32.const 1))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (i32.const 0))
  (func (export "netserv_process") (param i32)))
