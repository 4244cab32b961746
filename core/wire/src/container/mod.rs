// SPDX-License-Identifier: Apache-2.0
//! Control frames and packet ring layout between a node and its containers.
