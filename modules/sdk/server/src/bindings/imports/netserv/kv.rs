// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// State that outlives an instance, a module's replacement, and the node's restart.
///
/// It belongs to the module's name and its `state-schema`. Both parts of a module see the same entries.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod store {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// Why nothing was done.
	#[derive(Clone, Copy)]
	pub enum Error {
		/// The module's or its user's quota of entries or bytes is reached.
		Quota,
		/// A key of more than 256 bytes or a value of more than 65,536.
		TooLarge,
		/// An empty key, or an entry that is no number where one is needed.
		Invalid,
	}
	impl ::core::fmt::Debug for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Error::Quota => f.debug_tuple("Error::Quota").finish(),
				Error::TooLarge => f.debug_tuple("Error::TooLarge").finish(),
				Error::Invalid => f.debug_tuple("Error::Invalid").finish(),
			}
		}
	}
	impl ::core::fmt::Display for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			write!(f, "{:?}", self)
		}
	}
	impl ::core::error::Error for Error {}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns the value of a key.
	#[allow(async_fn_in_trait)]
	pub fn get(key: &[u8]) -> Result<Option<_rt::Vec<u8>>, Error> {
		unsafe {
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<u8>; 4 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 4
					* ::core::mem::size_of::<*const u8>()],
			);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:kv/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "get"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result10 = match l3 {
				0 => {
					let e = {
						let l4 = i32::from(
							*ptr1.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						match l4 {
							0 => None,
							1 => {
								let e = {
									let l5 = *ptr1
										.add(2 * ::core::mem::size_of::<*const u8>())
										.cast::<*mut u8>();
									let l6 = *ptr1
										.add(3 * ::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len7 = l6;
									<_ as From<
										_rt::Vec<_>,
									>>::from(_rt::Vec::from_raw_parts(l5.cast(), len7, len7))
								};
								Some(e)
							}
							_ => _rt::invalid_enum_discriminant(),
						}
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l8 = i32::from(
							*ptr1.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						let v9 = match l8 {
							0 => Error::Quota,
							1 => Error::TooLarge,
							n => {
								debug_assert_eq!(n, 2, "invalid enum discriminant");
								Error::Invalid
							}
						};
						v9
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result10
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Stores a value. It is on disk within a second.
	#[allow(async_fn_in_trait)]
	pub fn set(key: &[u8], value: &[u8]) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = value;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:kv/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "set"]
				fn wit_import3(_: *mut u8, _: usize, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import3(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import3(ptr0.cast_mut(), len0, ptr1.cast_mut(), len1, ptr2);
			let l4 = i32::from(*ptr2.add(0).cast::<u8>());
			let result7 = match l4 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l5 = i32::from(*ptr2.add(1).cast::<u8>());
						let v6 = match l5 {
							0 => Error::Quota,
							1 => Error::TooLarge,
							n => {
								debug_assert_eq!(n, 2, "invalid enum discriminant");
								Error::Invalid
							}
						};
						v6
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result7
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Forgets a key. Returns whether it was there.
	#[allow(async_fn_in_trait)]
	pub fn delete(key: &[u8]) -> Result<bool, Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:kv/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "delete"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result7 = match l3 {
				0 => {
					let e = {
						let l4 = i32::from(*ptr1.add(1).cast::<u8>());
						_rt::bool_lift(l4 as u8)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l5 = i32::from(*ptr1.add(1).cast::<u8>());
						let v6 = match l5 {
							0 => Error::Quota,
							1 => Error::TooLarge,
							n => {
								debug_assert_eq!(n, 2, "invalid enum discriminant");
								Error::Invalid
							}
						};
						v6
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result7
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns up to `max`, at most 1,024, keys after `after` in byte order; the first ones without `after`.
	#[allow(async_fn_in_trait)]
	pub fn keys(
		after: Option<&[u8]>,
		max: u32,
	) -> Result<_rt::Vec<_rt::Vec<u8>>, Error> {
		unsafe {
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<u8>; 3 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 3
					* ::core::mem::size_of::<*const u8>()],
			);
			let (result1_0, result1_1, result1_2) = match after {
				Some(e) => {
					let vec0 = e;
					let ptr0 = vec0.as_ptr().cast::<u8>();
					let len0 = vec0.len();
					(1i32, ptr0.cast_mut(), len0)
				}
				None => (0i32, ::core::ptr::null_mut(), 0usize),
			};
			let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:kv/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "keys"]
				fn wit_import3(_: i32, _: *mut u8, _: usize, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import3(
				_: i32,
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import3(result1_0, result1_1, result1_2, _rt::as_i32(&max), ptr2);
			let l4 = i32::from(*ptr2.add(0).cast::<u8>());
			let result13 = match l4 {
				0 => {
					let e = {
						let l5 = *ptr2
							.add(::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l6 = *ptr2
							.add(2 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let base10 = l5;
						let len10 = l6;
						let mut result10 = _rt::Vec::with_capacity(len10);
						for i in 0..len10 {
							let base = base10
								.add(i * (2 * ::core::mem::size_of::<*const u8>()));
							let e10 = {
								let l7 = *base.add(0).cast::<*mut u8>();
								let l8 = *base
									.add(::core::mem::size_of::<*const u8>())
									.cast::<usize>();
								let len9 = l8;
								<_ as From<
									_rt::Vec<_>,
								>>::from(_rt::Vec::from_raw_parts(l7.cast(), len9, len9))
							};
							result10.push(e10);
						}
						_rt::cabi_dealloc(
							base10,
							len10 * (2 * ::core::mem::size_of::<*const u8>()),
							::core::mem::size_of::<*const u8>(),
						);
						result10
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l11 = i32::from(
							*ptr2.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						let v12 = match l11 {
							0 => Error::Quota,
							1 => Error::TooLarge,
							n => {
								debug_assert_eq!(n, 2, "invalid enum discriminant");
								Error::Invalid
							}
						};
						v12
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result13
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Adds to an entry of eight little-endian bytes, wrapping; one that is not there counts as 0. Returns the sum.
	#[allow(async_fn_in_trait)]
	pub fn increment(key: &[u8], delta: i64) -> Result<i64, Error> {
		unsafe {
			#[repr(align(8))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:kv/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "increment"]
				fn wit_import2(_: *mut u8, _: usize, _: i64, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: i64, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, _rt::as_i64(&delta), ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result7 = match l3 {
				0 => {
					let e = {
						let l4 = *ptr1.add(8).cast::<i64>();
						l4
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l5 = i32::from(*ptr1.add(8).cast::<u8>());
						let v6 = match l5 {
							0 => Error::Quota,
							1 => Error::TooLarge,
							n => {
								debug_assert_eq!(n, 2, "invalid enum discriminant");
								Error::Invalid
							}
						};
						v6
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result7
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Stores `new`, or forgets the key, if its value is `old`. Returns whether it was.
	#[allow(async_fn_in_trait)]
	pub fn compare_and_set(
		key: &[u8],
		old: Option<&[u8]>,
		new: Option<&[u8]>,
	) -> Result<bool, Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let (result2_0, result2_1, result2_2) = match old {
				Some(e) => {
					let vec1 = e;
					let ptr1 = vec1.as_ptr().cast::<u8>();
					let len1 = vec1.len();
					(1i32, ptr1.cast_mut(), len1)
				}
				None => (0i32, ::core::ptr::null_mut(), 0usize),
			};
			let (result4_0, result4_1, result4_2) = match new {
				Some(e) => {
					let vec3 = e;
					let ptr3 = vec3.as_ptr().cast::<u8>();
					let len3 = vec3.len();
					(1i32, ptr3.cast_mut(), len3)
				}
				None => (0i32, ::core::ptr::null_mut(), 0usize),
			};
			let ptr5 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:kv/store@1.0.0")]
			unsafe extern "C" {
				#[link_name = "compare-and-set"]
				fn wit_import6(
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
					_: usize,
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import6(
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import6(
				ptr0.cast_mut(),
				len0,
				result2_0,
				result2_1,
				result2_2,
				result4_0,
				result4_1,
				result4_2,
				ptr5,
			);
			let l7 = i32::from(*ptr5.add(0).cast::<u8>());
			let result11 = match l7 {
				0 => {
					let e = {
						let l8 = i32::from(*ptr5.add(1).cast::<u8>());
						_rt::bool_lift(l8 as u8)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l9 = i32::from(*ptr5.add(1).cast::<u8>());
						let v10 = match l9 {
							0 => Error::Quota,
							1 => Error::TooLarge,
							n => {
								debug_assert_eq!(n, 2, "invalid enum discriminant");
								Error::Invalid
							}
						};
						v10
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result11
		}
	}
}
