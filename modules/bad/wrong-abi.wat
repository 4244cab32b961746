;; SPDX-License-Identifier: Apache-2.0
;; Was built for packet ABI 2: refused as `abi-mismatch`.
(module
  (memory (export "memory") 5)
  (func (export "netserv_abi") (result i32) (i32.const 2))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (i32.const 0))
  (func (export "netserv_process") (param i32)))
