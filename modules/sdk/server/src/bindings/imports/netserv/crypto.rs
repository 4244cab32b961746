// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// What needs keys. Calls take at most 16 MiB.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod crypto {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// Why there is no result.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// A key, nonce or signature of the wrong length, or a key that is none.
		Invalid,
		/// What was to be opened is not what was sealed.
		Forged,
		/// More than 16 MiB in one call.
		TooLarge,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::Invalid => "invalid",
				Error::Forged => "forged",
				Error::TooLarge => "too-large",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::Invalid => {
					"A key, nonce or signature of the wrong length, or a key that is none."
				}
				Error::Forged => "What was to be opened is not what was sealed.",
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
				0 => Error::Invalid,
				1 => Error::Forged,
				2 => Error::TooLarge,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// How to seal.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Cipher {
		/// ChaCha20-Poly1305 (RFC 8439).
		Chacha20Poly1305,
		/// AES-256 in Galois/Counter Mode (RFC 5116).
		Aes256Gcm,
	}
	impl ::core::fmt::Debug for Cipher {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Cipher::Chacha20Poly1305 => {
					f.debug_tuple("Cipher::Chacha20Poly1305").finish()
				}
				Cipher::Aes256Gcm => f.debug_tuple("Cipher::Aes256Gcm").finish(),
			}
		}
	}
	impl Cipher {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Cipher {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Cipher::Chacha20Poly1305,
				1 => Cipher::Aes256Gcm,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns HMAC-SHA-256 (RFC 2104).
	#[allow(async_fn_in_trait)]
	pub fn hmac_sha256(key: &[u8], message: &[u8]) -> Result<_rt::Vec<u8>, Error> {
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
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = message;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:crypto/crypto@1.0.0")]
			unsafe extern "C" {
				#[link_name = "hmac-sha256"]
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
			let result9 = match l4 {
				0 => {
					let e = {
						let l5 = *ptr2
							.add(::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l6 = *ptr2
							.add(2 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len7 = l6;
						<_ as From<
							_rt::Vec<_>,
						>>::from(_rt::Vec::from_raw_parts(l5.cast(), len7, len7))
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l8 = i32::from(
							*ptr2.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						Error::_lift(l8 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result9
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns HMAC-SHA-512 (RFC 2104).
	#[allow(async_fn_in_trait)]
	pub fn hmac_sha512(key: &[u8], message: &[u8]) -> Result<_rt::Vec<u8>, Error> {
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
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = message;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:crypto/crypto@1.0.0")]
			unsafe extern "C" {
				#[link_name = "hmac-sha512"]
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
			let result9 = match l4 {
				0 => {
					let e = {
						let l5 = *ptr2
							.add(::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l6 = *ptr2
							.add(2 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len7 = l6;
						<_ as From<
							_rt::Vec<_>,
						>>::from(_rt::Vec::from_raw_parts(l5.cast(), len7, len7))
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l8 = i32::from(
							*ptr2.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						Error::_lift(l8 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result9
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns whether two byte strings are equal, in a time that tells nothing of where they differ.
	#[allow(async_fn_in_trait)]
	pub fn equal(a: &[u8], b: &[u8]) -> bool {
		unsafe {
			let vec0 = a;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = b;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:crypto/crypto@1.0.0")]
			unsafe extern "C" {
				#[link_name = "equal"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8, _: usize) -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
			) -> i32 {
				unreachable!()
			}
			let ret = wit_import2(ptr0.cast_mut(), len0, ptr1.cast_mut(), len1);
			_rt::bool_lift(ret as u8)
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns whether an Ed25519 signature (RFC 8032) of 64 bytes is by the key of 32 bytes.
	#[allow(async_fn_in_trait)]
	pub fn verify_ed25519(
		key: &[u8],
		message: &[u8],
		signature: &[u8],
	) -> Result<bool, Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = message;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let vec2 = signature;
			let ptr2 = vec2.as_ptr().cast::<u8>();
			let len2 = vec2.len();
			let ptr3 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:crypto/crypto@1.0.0")]
			unsafe extern "C" {
				#[link_name = "verify-ed25519"]
				fn wit_import4(
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import4(
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import4(
				ptr0.cast_mut(),
				len0,
				ptr1.cast_mut(),
				len1,
				ptr2.cast_mut(),
				len2,
				ptr3,
			);
			let l5 = i32::from(*ptr3.add(0).cast::<u8>());
			let result8 = match l5 {
				0 => {
					let e = {
						let l6 = i32::from(*ptr3.add(1).cast::<u8>());
						_rt::bool_lift(l6 as u8)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l7 = i32::from(*ptr3.add(1).cast::<u8>());
						Error::_lift(l7 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result8
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Encrypts, and adds 16 bytes that tell a forgery: key of 32 bytes, nonce of 12 that is used once with the key.
	#[allow(async_fn_in_trait)]
	pub fn seal(
		cipher: Cipher,
		key: &[u8],
		nonce: &[u8],
		message: &[u8],
		associated: &[u8],
	) -> Result<_rt::Vec<u8>, Error> {
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
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = nonce;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let vec2 = message;
			let ptr2 = vec2.as_ptr().cast::<u8>();
			let len2 = vec2.len();
			let vec3 = associated;
			let ptr3 = vec3.as_ptr().cast::<u8>();
			let len3 = vec3.len();
			let ptr4 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:crypto/crypto@1.0.0")]
			unsafe extern "C" {
				#[link_name = "seal"]
				fn wit_import5(
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import5(
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import5(
				cipher.clone() as i32,
				ptr0.cast_mut(),
				len0,
				ptr1.cast_mut(),
				len1,
				ptr2.cast_mut(),
				len2,
				ptr3.cast_mut(),
				len3,
				ptr4,
			);
			let l6 = i32::from(*ptr4.add(0).cast::<u8>());
			let result11 = match l6 {
				0 => {
					let e = {
						let l7 = *ptr4
							.add(::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l8 = *ptr4
							.add(2 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len9 = l8;
						<_ as From<
							_rt::Vec<_>,
						>>::from(_rt::Vec::from_raw_parts(l7.cast(), len9, len9))
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l10 = i32::from(
							*ptr4.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						Error::_lift(l10 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result11
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Decrypts what `seal` made.
	#[allow(async_fn_in_trait)]
	pub fn open(
		cipher: Cipher,
		key: &[u8],
		nonce: &[u8],
		sealed: &[u8],
		associated: &[u8],
	) -> Result<_rt::Vec<u8>, Error> {
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
			let vec0 = key;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let vec1 = nonce;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let vec2 = sealed;
			let ptr2 = vec2.as_ptr().cast::<u8>();
			let len2 = vec2.len();
			let vec3 = associated;
			let ptr3 = vec3.as_ptr().cast::<u8>();
			let len3 = vec3.len();
			let ptr4 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:crypto/crypto@1.0.0")]
			unsafe extern "C" {
				#[link_name = "open"]
				fn wit_import5(
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import5(
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import5(
				cipher.clone() as i32,
				ptr0.cast_mut(),
				len0,
				ptr1.cast_mut(),
				len1,
				ptr2.cast_mut(),
				len2,
				ptr3.cast_mut(),
				len3,
				ptr4,
			);
			let l6 = i32::from(*ptr4.add(0).cast::<u8>());
			let result11 = match l6 {
				0 => {
					let e = {
						let l7 = *ptr4
							.add(::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l8 = *ptr4
							.add(2 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len9 = l8;
						<_ as From<
							_rt::Vec<_>,
						>>::from(_rt::Vec::from_raw_parts(l7.cast(), len9, len9))
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l10 = i32::from(
							*ptr4.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
						);
						Error::_lift(l10 as u8)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result11
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns at most 65,536 random bytes that nobody can guess.
	#[allow(async_fn_in_trait)]
	pub fn random(length: u32) -> _rt::Vec<u8> {
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
			#[link(wasm_import_module = "netserv:crypto/crypto@1.0.0")]
			unsafe extern "C" {
				#[link_name = "random"]
				fn wit_import1(_: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import1(_rt::as_i32(&length), ptr0);
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
