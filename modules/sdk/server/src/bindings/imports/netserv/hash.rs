// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Digests.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod digest {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// How to digest.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Algorithm {
		/// For protocols that ask for it: collisions are known.
		Sha1,
		Sha256,
		Sha512,
		/// For protocols that ask for it: it is broken.
		Md5,
		/// As in gzip; four big-endian bytes.
		Crc32,
		/// XXH3 of 64 bits, eight big-endian bytes: fast, and no secret from anybody.
		Xxh3,
	}
	impl ::core::fmt::Debug for Algorithm {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Algorithm::Sha1 => f.debug_tuple("Algorithm::Sha1").finish(),
				Algorithm::Sha256 => f.debug_tuple("Algorithm::Sha256").finish(),
				Algorithm::Sha512 => f.debug_tuple("Algorithm::Sha512").finish(),
				Algorithm::Md5 => f.debug_tuple("Algorithm::Md5").finish(),
				Algorithm::Crc32 => f.debug_tuple("Algorithm::Crc32").finish(),
				Algorithm::Xxh3 => f.debug_tuple("Algorithm::Xxh3").finish(),
			}
		}
	}
	impl Algorithm {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Algorithm {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Algorithm::Sha1,
				1 => Algorithm::Sha256,
				2 => Algorithm::Sha512,
				3 => Algorithm::Md5,
				4 => Algorithm::Crc32,
				5 => Algorithm::Xxh3,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// Why there is no digest.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// More than 16 MiB in one call.
		TooLarge,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::TooLarge => "too-large",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::TooLarge => "More than 16 MiB in one call.",
			}
		}
	}
	impl ::core::fmt::Debug for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Error")
				.field("code", &(*self as i32))
				.field("name", &self.name())
				.field("message", &self.message())
				.finish()
		}
	}
	impl ::core::fmt::Display for Error {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			write!(f, "{} (error {})", self.name(), * self as i32)
		}
	}
	impl ::core::error::Error for Error {}
	impl Error {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Error {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Error::TooLarge,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// A digest of bytes that come one after the other.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Hasher {
		handle: _rt::Resource<Hasher>,
	}
	impl Hasher {
		#[doc(hidden)]
		pub unsafe fn from_handle(handle: u32) -> Self {
			Self {
				handle: unsafe { _rt::Resource::from_handle(handle) },
			}
		}
		#[doc(hidden)]
		pub fn take_handle(&self) -> u32 {
			_rt::Resource::take_handle(&self.handle)
		}
		#[doc(hidden)]
		pub fn handle(&self) -> u32 {
			_rt::Resource::handle(&self.handle)
		}
	}
	unsafe impl _rt::WasmResource for Hasher {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:hash/digest@1.0.0")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]hasher"]
				fn drop(_: i32);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn drop(_: i32) {
				unreachable!()
			}
			unsafe {
				drop(_handle as i32);
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns the digest of some bytes.
	#[allow(async_fn_in_trait)]
	pub fn digest(algorithm: Algorithm, bytes: &[u8]) -> Result<_rt::Vec<u8>, Error> {
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
			let vec0 = bytes;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:hash/digest@1.0.0")]
			unsafe extern "C" {
				#[link_name = "digest"]
				fn wit_import2(_: i32, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: i32, _: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(algorithm.clone() as i32, ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result8 = match l3 {
				0 => {
					let e = {
						let l4 = *ptr1
							.add(::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l5 = *ptr1
							.add(2 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len6 = l5;
						<_ as From<
							_rt::Vec<_>,
						>>::from(_rt::Vec::from_raw_parts(l4.cast(), len6, len6))
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l7 = i32::from(
							*ptr1.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						Error::_lift(l7 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result8
		}
	}
	impl Hasher {
		#[allow(unused_unsafe, clippy::all)]
		/// Begins.
		#[allow(async_fn_in_trait)]
		pub fn new(algorithm: Algorithm) -> Self {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:hash/digest@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[constructor]hasher"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0(algorithm.clone() as i32);
				Hasher::from_handle(ret as u32)
			}
		}
	}
	impl Hasher {
		#[allow(unused_unsafe, clippy::all)]
		/// Takes further bytes.
		#[allow(async_fn_in_trait)]
		pub fn update(&self, bytes: &[u8]) -> Result<(), Error> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let vec0 = bytes;
				let ptr0 = vec0.as_ptr().cast::<u8>();
				let len0 = vec0.len();
				let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:hash/digest@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]hasher.update"]
					fn wit_import2(_: i32, _: *mut u8, _: usize, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import2(
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import2((self).handle() as i32, ptr0.cast_mut(), len0, ptr1);
				let l3 = i32::from(*ptr1.add(0).cast::<u8>());
				let result5 = match l3 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr1.add(1).cast::<u8>());
							Error::_lift(l4 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl Hasher {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns the digest of what was taken so far. More may be taken.
		#[allow(async_fn_in_trait)]
		pub fn digest(&self) -> _rt::Vec<u8> {
			unsafe {
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 2 * ::core::mem::size_of::<*const u8>()],
				);
				let mut ret_area = RetArea(
					[::core::mem::MaybeUninit::uninit(); 2
						* ::core::mem::size_of::<*const u8>()],
				);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:hash/digest@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]hasher.digest"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = *ptr0.add(0).cast::<*mut u8>();
				let l3 = *ptr0.add(::core::mem::size_of::<*const u8>()).cast::<usize>();
				let len4 = l3;
				let result5 = <_ as From<
					_rt::Vec<_>,
				>>::from(_rt::Vec::from_raw_parts(l2.cast(), len4, len4));
				result5
			}
		}
	}
}
