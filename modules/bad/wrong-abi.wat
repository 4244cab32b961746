;; SPDX-License-Identifier: Apache-2.0
;; Was built for packet ABI 2: refused as `abi-mismatch`.
(module
  (memory (export "memory") 5)
  ;; Computed, so that it is not seen before the node asks.
  (func (export "netserv_abi") (result i32) (i32.add (i32.const 1) (i32.const 1)))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (i32.const 0))
  (func (export "netserv_process") (param i32)))
