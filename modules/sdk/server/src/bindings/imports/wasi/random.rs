// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// WASI Random is a random data API.
///
/// It is intended to be portable at least between Unix-family platforms and
/// Windows.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod random {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	#[allow(unused_unsafe, clippy::all)]
	/// Return `len` cryptographically-secure random or pseudo-random bytes.
	///
	/// This function must produce data at least as cryptographically secure and
	/// fast as an adequately seeded cryptographically-secure pseudo-random
	/// number generator (CSPRNG). It must not block, from the perspective of
	/// the calling program, under any circumstances, including on the first
	/// request and on requests for numbers of bytes. The returned data must
	/// always be unpredictable.
	///
	/// This function must always return fresh data. Deterministic environments
	/// must omit this function, rather than implementing it with deterministic
	/// data.
	#[allow(async_fn_in_trait)]
	pub fn get_random_bytes(len: u64) -> _rt::Vec<u8> {
		unsafe {
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<u8>; 2 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 2
					* ::core::mem::size_of::<*const u8>()],
			);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:random/random@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-random-bytes"]
				fn wit_import1(_: i64, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i64, _: *mut u8) {
				unreachable!()
			}
			wit_import1(_rt::as_i64(&len), ptr0);
			let l2 = *ptr0.add(0).cast::<*mut u8>();
			let l3 = *ptr0.add(::core::mem::size_of::<*const u8>()).cast::<usize>();
			let len4 = l3;
			let result5 = <_ as From<
				_rt::Vec<_>,
			>>::from(_rt::Vec::from_raw_parts(l2.cast(), len4, len4));
			result5
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Return a cryptographically-secure random or pseudo-random `u64` value.
	///
	/// This function returns the same type of data as `get-random-bytes`,
	/// represented as a `u64`.
	#[allow(async_fn_in_trait)]
	pub fn get_random_u64() -> u64 {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:random/random@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-random-u64"]
				fn wit_import0() -> i64;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i64 {
				unreachable!()
			}
			let ret = wit_import0();
			ret as u64
		}
	}
}
/// The insecure interface for insecure pseudo-random numbers.
///
/// It is intended to be portable at least between Unix-family platforms and
/// Windows.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod insecure {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	#[allow(unused_unsafe, clippy::all)]
	/// Return `len` insecure pseudo-random bytes.
	///
	/// This function is not cryptographically secure. Do not use it for
	/// anything related to security.
	///
	/// There are no requirements on the values of the returned bytes, however
	/// implementations are encouraged to return evenly distributed values with
	/// a long period.
	#[allow(async_fn_in_trait)]
	pub fn get_insecure_random_bytes(len: u64) -> _rt::Vec<u8> {
		unsafe {
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<u8>; 2 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 2
					* ::core::mem::size_of::<*const u8>()],
			);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:random/insecure@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-insecure-random-bytes"]
				fn wit_import1(_: i64, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i64, _: *mut u8) {
				unreachable!()
			}
			wit_import1(_rt::as_i64(&len), ptr0);
			let l2 = *ptr0.add(0).cast::<*mut u8>();
			let l3 = *ptr0.add(::core::mem::size_of::<*const u8>()).cast::<usize>();
			let len4 = l3;
			let result5 = <_ as From<
				_rt::Vec<_>,
			>>::from(_rt::Vec::from_raw_parts(l2.cast(), len4, len4));
			result5
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Return an insecure pseudo-random `u64` value.
	///
	/// This function returns the same type of pseudo-random data as
	/// `get-insecure-random-bytes`, represented as a `u64`.
	#[allow(async_fn_in_trait)]
	pub fn get_insecure_random_u64() -> u64 {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:random/insecure@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-insecure-random-u64"]
				fn wit_import0() -> i64;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i64 {
				unreachable!()
			}
			let ret = wit_import0();
			ret as u64
		}
	}
}
/// The insecure-seed interface for seeding hash-map DoS resistance.
///
/// It is intended to be portable at least between Unix-family platforms and
/// Windows.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod insecure_seed {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	#[allow(unused_unsafe, clippy::all)]
	/// Return a 128-bit value that may contain a pseudo-random value.
	///
	/// The returned value is not required to be computed from a CSPRNG, and may
	/// even be entirely deterministic. Host implementations are encouraged to
	/// provide pseudo-random values to any program exposed to
	/// attacker-controlled content, to enable DoS protection built into many
	/// languages' hash-map implementations.
	///
	/// This function is intended to only be called once, by a source language
	/// to initialize Denial Of Service (DoS) protection in its hash-map
	/// implementation.
	///
	/// # Expected future evolution
	///
	/// This will likely be changed to a value import, to prevent it from being
	/// called multiple times and potentially used for purposes other than DoS
	/// protection.
	#[allow(async_fn_in_trait)]
	pub fn insecure_seed() -> (u64, u64) {
		unsafe {
			#[repr(align(8))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:random/insecure-seed@0.2.12")]
			unsafe extern "C" {
				#[link_name = "insecure-seed"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = *ptr0.add(0).cast::<i64>();
			let l3 = *ptr0.add(8).cast::<i64>();
			let result4 = (l2 as u64, l3 as u64);
			result4
		}
	}
}
