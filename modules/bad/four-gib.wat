;; SPDX-License-Identifier: Apache-2.0
;; Wants 4 GiB of memory: refused as `memory-limit`.
(module
  (memory (export "memory") 65536)
  (func (export "netserv_abi") (result i32) (i32.const 1))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (i32.const 0))
  (func (export "netserv_process") (param i32)))
