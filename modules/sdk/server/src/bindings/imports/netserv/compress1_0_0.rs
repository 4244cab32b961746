// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Compression of streams, piece by piece.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod codec {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// The encoding, as in HTTP's `content-encoding`.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Encoding {
		Gzip,
		Br,
		Zstd,
	}
	impl ::core::fmt::Debug for Encoding {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				Encoding::Gzip => f.debug_tuple("Encoding::Gzip").finish(),
				Encoding::Br => f.debug_tuple("Encoding::Br").finish(),
				Encoding::Zstd => f.debug_tuple("Encoding::Zstd").finish(),
			}
		}
	}
	impl Encoding {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> Encoding {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => Encoding::Gzip,
				1 => Encoding::Br,
				2 => Encoding::Zstd,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// Why nothing was done.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// The input is not of this encoding, or ends early.
		Invalid,
		/// The output would be larger than allowed, or the input of this call is.
		TooLarge,
		/// All coders of the container would take more memory together than they may have.
		Quota,
		/// What was written before has to be read first.
		Busy,
		/// The stream is over.
		Finished,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::Invalid => "invalid",
				Error::TooLarge => "too-large",
				Error::Quota => "quota",
				Error::Busy => "busy",
				Error::Finished => "finished",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::Invalid => "The input is not of this encoding, or ends early.",
				Error::TooLarge => {
					"The output would be larger than allowed, or the input of this call is."
				}
				Error::Quota => {
					"All coders of the container would take more memory together than they may have."
				}
				Error::Busy => "What was written before has to be read first.",
				Error::Finished => "The stream is over.",
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
				1 => Error::TooLarge,
				2 => Error::Quota,
				3 => Error::Busy,
				4 => Error::Finished,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// A stream that is being compressed.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Compressor {
		handle: _rt::Resource<Compressor>,
	}
	impl Compressor {
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
	unsafe impl _rt::WasmResource for Compressor {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]compressor"]
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
	/// A stream that is being decompressed: write a piece, read until nothing comes, and again; then finish.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Decompressor {
		handle: _rt::Resource<Decompressor>,
	}
	impl Decompressor {
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
	unsafe impl _rt::WasmResource for Decompressor {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]decompressor"]
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
	impl Compressor {
		#[allow(unused_unsafe, clippy::all)]
		/// Begins; `level` 0 (fast) to 9 (small).
		#[allow(async_fn_in_trait)]
		pub fn open(encoding: Encoding, level: u8) -> Result<Compressor, Error> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[static]compressor.open"]
					fn wit_import1(_: i32, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1(encoding.clone() as i32, _rt::as_i32(&level), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(4).cast::<i32>();
							Compressor::from_handle(l3 as u32)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(4).cast::<u8>());
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
	impl Compressor {
		#[allow(unused_unsafe, clippy::all)]
		/// Takes at most 1 MiB, and returns what is ready.
		#[allow(async_fn_in_trait)]
		pub fn write(&self, bytes: &[u8]) -> Result<_rt::Vec<u8>, Error> {
			unsafe {
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 3 * ::core::mem::size_of::<*const u8>()],
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
				#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]compressor.write"]
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
	}
	impl Compressor {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns what belongs to the bytes so far, so that who decompresses gets them all.
		#[allow(async_fn_in_trait)]
		pub fn flush(&self) -> Result<_rt::Vec<u8>, Error> {
			unsafe {
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 3 * ::core::mem::size_of::<*const u8>()],
				);
				let mut ret_area = RetArea(
					[::core::mem::MaybeUninit::uninit(); 3
						* ::core::mem::size_of::<*const u8>()],
				);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]compressor.flush"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result7 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0
								.add(::core::mem::size_of::<*const u8>())
								.cast::<*mut u8>();
							let l4 = *ptr0
								.add(2 * ::core::mem::size_of::<*const u8>())
								.cast::<usize>();
							let len5 = l4;
							<_ as From<
								_rt::Vec<_>,
							>>::from(_rt::Vec::from_raw_parts(l3.cast(), len5, len5))
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l6 = i32::from(
								*ptr0.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
							);
							Error::_lift(l6 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result7
			}
		}
	}
	impl Compressor {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns the rest.
		#[allow(async_fn_in_trait)]
		pub fn finish(&self) -> Result<_rt::Vec<u8>, Error> {
			unsafe {
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 3 * ::core::mem::size_of::<*const u8>()],
				);
				let mut ret_area = RetArea(
					[::core::mem::MaybeUninit::uninit(); 3
						* ::core::mem::size_of::<*const u8>()],
				);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]compressor.finish"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result7 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0
								.add(::core::mem::size_of::<*const u8>())
								.cast::<*mut u8>();
							let l4 = *ptr0
								.add(2 * ::core::mem::size_of::<*const u8>())
								.cast::<usize>();
							let len5 = l4;
							<_ as From<
								_rt::Vec<_>,
							>>::from(_rt::Vec::from_raw_parts(l3.cast(), len5, len5))
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l6 = i32::from(
								*ptr0.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
							);
							Error::_lift(l6 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result7
			}
		}
	}
	impl Decompressor {
		#[allow(unused_unsafe, clippy::all)]
		/// Begins. More than `output-max` bytes in all are an error.
		#[allow(async_fn_in_trait)]
		pub fn open(encoding: Encoding, output_max: u64) -> Result<Decompressor, Error> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[static]decompressor.open"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1(encoding.clone() as i32, _rt::as_i64(&output_max), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(4).cast::<i32>();
							Decompressor::from_handle(l3 as u32)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(4).cast::<u8>());
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
	impl Decompressor {
		#[allow(unused_unsafe, clippy::all)]
		/// Takes at most 64 KiB.
		#[allow(async_fn_in_trait)]
		pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let vec0 = bytes;
				let ptr0 = vec0.as_ptr().cast::<u8>();
				let len0 = vec0.len();
				let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]decompressor.write"]
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
	impl Decompressor {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns up to `max`, at most 256 KiB; nothing if more has to be written.
		#[allow(async_fn_in_trait)]
		pub fn read(&self, max: u32) -> Result<_rt::Vec<u8>, Error> {
			unsafe {
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 3 * ::core::mem::size_of::<*const u8>()],
				);
				let mut ret_area = RetArea(
					[::core::mem::MaybeUninit::uninit(); 3
						* ::core::mem::size_of::<*const u8>()],
				);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]decompressor.read"]
					fn wit_import1(_: i32, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i32(&max), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result7 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0
								.add(::core::mem::size_of::<*const u8>())
								.cast::<*mut u8>();
							let l4 = *ptr0
								.add(2 * ::core::mem::size_of::<*const u8>())
								.cast::<usize>();
							let len5 = l4;
							<_ as From<
								_rt::Vec<_>,
							>>::from(_rt::Vec::from_raw_parts(l3.cast(), len5, len5))
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l6 = i32::from(
								*ptr0.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
							);
							Error::_lift(l6 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result7
			}
		}
	}
	impl Decompressor {
		#[allow(unused_unsafe, clippy::all)]
		/// Ends the stream; an error if it is not complete.
		#[allow(async_fn_in_trait)]
		pub fn finish(&self) -> Result<(), Error> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]decompressor.finish"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							Error::_lift(l3 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Compresses at most 1 MiB at once.
	#[allow(async_fn_in_trait)]
	pub fn compress(
		encoding: Encoding,
		level: u8,
		bytes: &[u8],
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
			let vec0 = bytes;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
			unsafe extern "C" {
				#[link_name = "compress"]
				fn wit_import2(_: i32, _: i32, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(
				_: i32,
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import2(
				encoding.clone() as i32,
				_rt::as_i32(&level),
				ptr0.cast_mut(),
				len0,
				ptr1,
			);
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
	#[allow(unused_unsafe, clippy::all)]
	/// Decompresses at most 1 MiB at once, into at most `output-max` bytes, 8 MiB at most.
	#[allow(async_fn_in_trait)]
	pub fn decompress(
		encoding: Encoding,
		bytes: &[u8],
		output_max: u32,
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
			let vec0 = bytes;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:compress/codec@1.0.0")]
			unsafe extern "C" {
				#[link_name = "decompress"]
				fn wit_import2(_: i32, _: *mut u8, _: usize, _: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(
				_: i32,
				_: *mut u8,
				_: usize,
				_: i32,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import2(
				encoding.clone() as i32,
				ptr0.cast_mut(),
				len0,
				_rt::as_i32(&output_max),
				ptr1,
			);
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
}
