// SPDX-License-Identifier: Apache-2.0
//! The node from outside: inputs in, outputs out.
