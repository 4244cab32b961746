// SPDX-License-Identifier: Apache-2.0
//! Recorded tests of bundles.
