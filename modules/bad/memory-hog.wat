;; SPDX-License-Identifier: Apache-2.0
;; Takes more memory with each packet until it gets no more, then traps: fails as `memory-limit`.
(module
  (memory (export "memory") 5)
  (func (export "netserv_abi") (result i32) (i32.const 1))
  (func (export "netserv_area") (param i32 i32) (result i32) (i32.const 65536))
  (func (export "netserv_start") (result i32) (i32.const 0))
  (func (export "netserv_process") (param i32)
    (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))))
