// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// A poll API intended to let users wait for I/O events on multiple handles
/// at once.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod poll {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// `pollable` represents a single I/O event which may be ready, or not.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Pollable {
		handle: _rt::Resource<Pollable>,
	}
	impl Pollable {
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
	unsafe impl _rt::WasmResource for Pollable {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:io/poll@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]pollable"]
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
	impl Pollable {
		#[allow(unused_unsafe, clippy::all)]
		/// Return the readiness of a pollable. This function never blocks.
		///
		/// Returns `true` when the pollable is ready, and `false` otherwise.
		#[allow(async_fn_in_trait)]
		pub fn ready(&self) -> bool {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/poll@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]pollable.ready"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0((self).handle() as i32);
				_rt::bool_lift(ret as u8)
			}
		}
	}
	impl Pollable {
		#[allow(unused_unsafe, clippy::all)]
		/// `block` returns immediately if the pollable is ready, and otherwise
		/// blocks until ready.
		///
		/// This function is equivalent to calling `poll.poll` on a list
		/// containing only this pollable.
		#[allow(async_fn_in_trait)]
		pub fn block(&self) -> () {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/poll@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]pollable.block"]
					fn wit_import0(_: i32);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) {
					unreachable!()
				}
				wit_import0((self).handle() as i32);
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Poll for completion on a set of pollables.
	///
	/// This function takes a list of pollables, which identify I/O sources of
	/// interest, and waits until one or more of the events is ready for I/O.
	///
	/// The result `list<u32>` contains one or more indices of handles in the
	/// argument list that is ready for I/O.
	///
	/// This function traps if either:
	/// - the list is empty, or:
	/// - the list contains more elements than can be indexed with a `u32` value.
	///
	/// A timeout can be implemented by adding a pollable from the
	/// wasi-clocks API to the list.
	///
	/// This function does not return a `result`; polling in itself does not
	/// do any I/O so it doesn't fail. If any of the I/O sources identified by
	/// the pollables has an error, it is indicated by marking the source as
	/// being ready for I/O.
	#[allow(async_fn_in_trait)]
	pub fn poll(in_: &[&Pollable]) -> _rt::Vec<u32> {
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
			let vec0 = in_;
			let len0 = vec0.len();
			let layout0 = _rt::alloc::Layout::from_size_align(vec0.len() * 4, 4)
				.unwrap();
			let (result0, _cleanup0) = wit_bindgen::rt::Cleanup::new(layout0);
			for (i, e) in vec0.into_iter().enumerate() {
				let base = result0.add(i * 4);
				{
					*base.add(0).cast::<i32>() = (e).handle() as i32;
				}
			}
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:io/poll@0.2.12")]
			unsafe extern "C" {
				#[link_name = "poll"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(result0, len0, ptr1);
			let l3 = *ptr1.add(0).cast::<*mut u8>();
			let l4 = *ptr1.add(::core::mem::size_of::<*const u8>()).cast::<usize>();
			let len5 = l4;
			let result6 = <_ as From<
				_rt::Vec<_>,
			>>::from(_rt::Vec::from_raw_parts(l3.cast(), len5, len5));
			result6
		}
	}
}
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod error {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// A resource which represents some error information.
	///
	/// The only method provided by this resource is `to-debug-string`,
	/// which provides some human-readable information about the error.
	///
	/// In the `wasi:io` package, this resource is returned through the
	/// `wasi:io/streams.stream-error` type.
	///
	/// To provide more specific error information, other interfaces may
	/// offer functions to "downcast" this error into more specific types. For example,
	/// errors returned from streams derived from filesystem types can be described using
	/// the filesystem's own error-code type. This is done using the function
	/// `wasi:filesystem/types.filesystem-error-code`, which takes a `borrow<error>`
	/// parameter and returns an `option<wasi:filesystem/types.error-code>`.
	///
	/// The set of functions which can "downcast" an `error` into a more
	/// concrete type is open.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Error {
		handle: _rt::Resource<Error>,
	}
	impl Error {
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
	unsafe impl _rt::WasmResource for Error {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:io/error@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]error"]
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
	impl Error {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns a string that is suitable to assist humans in debugging
		/// this error.
		///
		/// WARNING: The returned string should not be consumed mechanically!
		/// It may change across platforms, hosts, or other implementation
		/// details. Parsing this string is a major platform-compatibility
		/// hazard.
		#[allow(async_fn_in_trait)]
		pub fn to_debug_string(&self) -> _rt::String {
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
				#[link(wasm_import_module = "wasi:io/error@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]error.to-debug-string"]
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
				let bytes4 = _rt::Vec::from_raw_parts(l2.cast(), len4, len4);
				let result5 = _rt::string_lift(bytes4);
				result5
			}
		}
	}
}
/// WASI I/O is an I/O abstraction API which is currently focused on providing
/// stream types.
///
/// In the future, the component model is expected to add built-in stream types;
/// when it does, they are expected to subsume this API.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod streams {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Error = super::super::super::wasi::io::error::Error;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	/// An error for input-stream and output-stream operations.
	pub enum StreamError {
		/// The last operation (a write or flush) failed before completion.
		///
		/// More information is available in the `error` payload.
		///
		/// After this, the stream will be closed. All future operations return
		/// `stream-error::closed`.
		LastOperationFailed(Error),
		/// The stream is closed: no more input will be accepted by the
		/// stream. A closed output-stream will return this error on all
		/// future operations.
		Closed,
	}
	impl ::core::fmt::Debug for StreamError {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				StreamError::LastOperationFailed(e) => {
					f.debug_tuple("StreamError::LastOperationFailed").field(e).finish()
				}
				StreamError::Closed => f.debug_tuple("StreamError::Closed").finish(),
			}
		}
	}
	impl ::core::fmt::Display for StreamError {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			write!(f, "{:?}", self)
		}
	}
	impl ::core::error::Error for StreamError {}
	/// An input bytestream.
	///
	/// `input-stream`s are *non-blocking* to the extent practical on underlying
	/// platforms. I/O operations always return promptly; if fewer bytes are
	/// promptly available than requested, they return the number of bytes promptly
	/// available, which could even be zero. To wait for data to be available,
	/// use the `subscribe` function to obtain a `pollable` which can be polled
	/// for using `wasi:io/poll`.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct InputStream {
		handle: _rt::Resource<InputStream>,
	}
	impl InputStream {
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
	unsafe impl _rt::WasmResource for InputStream {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]input-stream"]
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
	/// An output bytestream.
	///
	/// `output-stream`s are *non-blocking* to the extent practical on
	/// underlying platforms. Except where specified otherwise, I/O operations also
	/// always return promptly, after the number of bytes that can be written
	/// promptly, which could even be zero. To wait for the stream to be ready to
	/// accept data, the `subscribe` function to obtain a `pollable` which can be
	/// polled for using `wasi:io/poll`.
	///
	/// Dropping an `output-stream` while there's still an active write in
	/// progress may result in the data being lost. Before dropping the stream,
	/// be sure to fully flush your writes.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct OutputStream {
		handle: _rt::Resource<OutputStream>,
	}
	impl OutputStream {
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
	unsafe impl _rt::WasmResource for OutputStream {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]output-stream"]
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
	impl InputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Perform a non-blocking read from the stream.
		///
		/// When the source of a `read` is binary data, the bytes from the source
		/// are returned verbatim. When the source of a `read` is known to the
		/// implementation to be text, bytes containing the UTF-8 encoding of the
		/// text are returned.
		///
		/// This function returns a list of bytes containing the read data,
		/// when successful. The returned list will contain up to `len` bytes;
		/// it may return fewer than requested, but not more. The list is
		/// empty when no bytes are available for reading at this time. The
		/// pollable given by `subscribe` will be ready when more bytes are
		/// available.
		///
		/// This function fails with a `stream-error` when the operation
		/// encounters an error, giving `last-operation-failed`, or when the
		/// stream is closed, giving `closed`.
		///
		/// When the caller gives a `len` of 0, it represents a request to
		/// read 0 bytes. If the stream is still open, this call should
		/// succeed and return an empty list, or otherwise fail with `closed`.
		///
		/// The `len` parameter is a `u64`, which could represent a list of u8 which
		/// is not possible to allocate in wasm32, or not desirable to allocate as
		/// as a return value by the callee. The callee may return a list of bytes
		/// less than `len` in size while more bytes are available for reading.
		#[allow(async_fn_in_trait)]
		pub fn read(&self, len: u64) -> Result<_rt::Vec<u8>, StreamError> {
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
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]input-stream.read"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&len), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result9 = match l2 {
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
							let v8 = match l6 {
								0 => {
									let e8 = {
										let l7 = *ptr0
											.add(4 + 1 * ::core::mem::size_of::<*const u8>())
											.cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l7 as u32,
										)
									};
									StreamError::LastOperationFailed(e8)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
								}
							};
							v8
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result9
			}
		}
	}
	impl InputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Read bytes from a stream, after blocking until at least one byte can
		/// be read. Except for blocking, behavior is identical to `read`.
		#[allow(async_fn_in_trait)]
		pub fn blocking_read(&self, len: u64) -> Result<_rt::Vec<u8>, StreamError> {
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
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]input-stream.blocking-read"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&len), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result9 = match l2 {
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
							let v8 = match l6 {
								0 => {
									let e8 = {
										let l7 = *ptr0
											.add(4 + 1 * ::core::mem::size_of::<*const u8>())
											.cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l7 as u32,
										)
									};
									StreamError::LastOperationFailed(e8)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
								}
							};
							v8
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result9
			}
		}
	}
	impl InputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Skip bytes from a stream. Returns number of bytes skipped.
		///
		/// Behaves identical to `read`, except instead of returning a list
		/// of bytes, returns the number of bytes consumed from the stream.
		#[allow(async_fn_in_trait)]
		pub fn skip(&self, len: u64) -> Result<u64, StreamError> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]input-stream.skip"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&len), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result7 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							let v6 = match l4 {
								0 => {
									let e6 = {
										let l5 = *ptr0.add(12).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l5 as u32,
										)
									};
									StreamError::LastOperationFailed(e6)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
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
	}
	impl InputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Skip bytes from a stream, after blocking until at least one byte
		/// can be skipped. Except for blocking behavior, identical to `skip`.
		#[allow(async_fn_in_trait)]
		pub fn blocking_skip(&self, len: u64) -> Result<u64, StreamError> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]input-stream.blocking-skip"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&len), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result7 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							let v6 = match l4 {
								0 => {
									let e6 = {
										let l5 = *ptr0.add(12).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l5 as u32,
										)
									};
									StreamError::LastOperationFailed(e6)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
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
	}
	impl InputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Create a `pollable` which will resolve once either the specified stream
		/// has bytes available to read or the other end of the stream has been
		/// closed.
		/// The created `pollable` is a child resource of the `input-stream`.
		/// Implementations may trap if the `input-stream` is dropped before
		/// all derived `pollable`s created with this function are dropped.
		#[allow(async_fn_in_trait)]
		pub fn subscribe(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]input-stream.subscribe"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0((self).handle() as i32);
				super::super::super::wasi::io::poll::Pollable::from_handle(ret as u32)
			}
		}
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Check readiness for writing. This function never blocks.
		///
		/// Returns the number of bytes permitted for the next call to `write`,
		/// or an error. Calling `write` with more bytes than this function has
		/// permitted will trap.
		///
		/// When this function returns 0 bytes, the `subscribe` pollable will
		/// become ready when this function will report at least 1 byte, or an
		/// error.
		#[allow(async_fn_in_trait)]
		pub fn check_write(&self) -> Result<u64, StreamError> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.check-write"]
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
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							let v6 = match l4 {
								0 => {
									let e6 = {
										let l5 = *ptr0.add(12).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l5 as u32,
										)
									};
									StreamError::LastOperationFailed(e6)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
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
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Perform a write. This function never blocks.
		///
		/// When the destination of a `write` is binary data, the bytes from
		/// `contents` are written verbatim. When the destination of a `write` is
		/// known to the implementation to be text, the bytes of `contents` are
		/// transcoded from UTF-8 into the encoding of the destination and then
		/// written.
		///
		/// Precondition: check-write gave permit of Ok(n) and contents has a
		/// length of less than or equal to n. Otherwise, this function will trap.
		///
		/// returns Err(closed) without writing if the stream has closed since
		/// the last call to check-write provided a permit.
		#[allow(async_fn_in_trait)]
		pub fn write(&self, contents: &[u8]) -> Result<(), StreamError> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
				let vec0 = contents;
				let ptr0 = vec0.as_ptr().cast::<u8>();
				let len0 = vec0.len();
				let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.write"]
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
				let result7 = match l3 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr1.add(4).cast::<u8>());
							let v6 = match l4 {
								0 => {
									let e6 = {
										let l5 = *ptr1.add(8).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l5 as u32,
										)
									};
									StreamError::LastOperationFailed(e6)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
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
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Perform a write of up to 4096 bytes, and then flush the stream. Block
		/// until all of these operations are complete, or an error occurs.
		///
		/// Returns success when all of the contents written are successfully
		/// flushed to output. If an error occurs at any point before all
		/// contents are successfully flushed, that error is returned as soon as
		/// possible. If writing and flushing the complete contents causes the
		/// stream to become closed, this call should return success, and
		/// subsequent calls to check-write or other interfaces should return
		/// stream-error::closed.
		#[allow(async_fn_in_trait)]
		pub fn blocking_write_and_flush(
			&self,
			contents: &[u8],
		) -> Result<(), StreamError> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
				let vec0 = contents;
				let ptr0 = vec0.as_ptr().cast::<u8>();
				let len0 = vec0.len();
				let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.blocking-write-and-flush"]
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
				let result7 = match l3 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr1.add(4).cast::<u8>());
							let v6 = match l4 {
								0 => {
									let e6 = {
										let l5 = *ptr1.add(8).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l5 as u32,
										)
									};
									StreamError::LastOperationFailed(e6)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
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
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Request to flush buffered output. This function never blocks.
		///
		/// This tells the output-stream that the caller intends any buffered
		/// output to be flushed. the output which is expected to be flushed
		/// is all that has been passed to `write` prior to this call.
		///
		/// Upon calling this function, the `output-stream` will not accept any
		/// writes (`check-write` will return `ok(0)`) until the flush has
		/// completed. The `subscribe` pollable will become ready when the
		/// flush has completed and the stream can accept more writes.
		#[allow(async_fn_in_trait)]
		pub fn flush(&self) -> Result<(), StreamError> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.flush"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result6 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(4).cast::<u8>());
							let v5 = match l3 {
								0 => {
									let e5 = {
										let l4 = *ptr0.add(8).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l4 as u32,
										)
									};
									StreamError::LastOperationFailed(e5)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
								}
							};
							v5
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result6
			}
		}
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Request to flush buffered output, and block until flush completes
		/// and stream is ready for writing again.
		#[allow(async_fn_in_trait)]
		pub fn blocking_flush(&self) -> Result<(), StreamError> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.blocking-flush"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result6 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(4).cast::<u8>());
							let v5 = match l3 {
								0 => {
									let e5 = {
										let l4 = *ptr0.add(8).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l4 as u32,
										)
									};
									StreamError::LastOperationFailed(e5)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
								}
							};
							v5
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result6
			}
		}
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Create a `pollable` which will resolve once the output-stream
		/// is ready for more writing, or an error has occurred. When this
		/// pollable is ready, `check-write` will return `ok(n)` with n>0, or an
		/// error.
		///
		/// If the stream is closed, this pollable is always ready immediately.
		///
		/// The created `pollable` is a child resource of the `output-stream`.
		/// Implementations may trap if the `output-stream` is dropped before
		/// all derived `pollable`s created with this function are dropped.
		#[allow(async_fn_in_trait)]
		pub fn subscribe(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.subscribe"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0((self).handle() as i32);
				super::super::super::wasi::io::poll::Pollable::from_handle(ret as u32)
			}
		}
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Write zeroes to a stream.
		///
		/// This should be used precisely like `write` with the exact same
		/// preconditions (must use check-write first), but instead of
		/// passing a list of bytes, you simply pass the number of zero-bytes
		/// that should be written.
		#[allow(async_fn_in_trait)]
		pub fn write_zeroes(&self, len: u64) -> Result<(), StreamError> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.write-zeroes"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&len), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result6 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(4).cast::<u8>());
							let v5 = match l3 {
								0 => {
									let e5 = {
										let l4 = *ptr0.add(8).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l4 as u32,
										)
									};
									StreamError::LastOperationFailed(e5)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
								}
							};
							v5
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result6
			}
		}
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Perform a write of up to 4096 zeroes, and then flush the stream.
		/// Block until all of these operations are complete, or an error
		/// occurs.
		///
		/// Functionality is equivelant to `blocking-write-and-flush` with
		/// contents given as a list of len containing only zeroes.
		#[allow(async_fn_in_trait)]
		pub fn blocking_write_zeroes_and_flush(
			&self,
			len: u64,
		) -> Result<(), StreamError> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.blocking-write-zeroes-and-flush"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&len), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result6 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(4).cast::<u8>());
							let v5 = match l3 {
								0 => {
									let e5 = {
										let l4 = *ptr0.add(8).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l4 as u32,
										)
									};
									StreamError::LastOperationFailed(e5)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
								}
							};
							v5
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result6
			}
		}
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Read from one stream and write to another.
		///
		/// The behavior of splice is equivalent to:
		/// 1. calling `check-write` on the `output-stream`
		/// 2. calling `read` on the `input-stream` with the smaller of the
		/// `check-write` permitted length and the `len` provided to `splice`
		/// 3. calling `write` on the `output-stream` with that read data.
		///
		/// Any error reported by the call to `check-write`, `read`, or
		/// `write` ends the splice and reports that error.
		///
		/// This function returns the number of bytes transferred; it may be less
		/// than `len`.
		#[allow(async_fn_in_trait)]
		pub fn splice(&self, src: &InputStream, len: u64) -> Result<u64, StreamError> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.splice"]
					fn wit_import1(_: i32, _: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1(
					(self).handle() as i32,
					(src).handle() as i32,
					_rt::as_i64(&len),
					ptr0,
				);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result7 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							let v6 = match l4 {
								0 => {
									let e6 = {
										let l5 = *ptr0.add(12).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l5 as u32,
										)
									};
									StreamError::LastOperationFailed(e6)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
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
	}
	impl OutputStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Read from one stream and write to another, with blocking.
		///
		/// This is similar to `splice`, except that it blocks until the
		/// `output-stream` is ready for writing, and the `input-stream`
		/// is ready for reading, before performing the `splice`.
		#[allow(async_fn_in_trait)]
		pub fn blocking_splice(
			&self,
			src: &InputStream,
			len: u64,
		) -> Result<u64, StreamError> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:io/streams@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]output-stream.blocking-splice"]
					fn wit_import1(_: i32, _: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1(
					(self).handle() as i32,
					(src).handle() as i32,
					_rt::as_i64(&len),
					ptr0,
				);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result7 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							let v6 = match l4 {
								0 => {
									let e6 = {
										let l5 = *ptr0.add(12).cast::<i32>();
										super::super::super::wasi::io::error::Error::from_handle(
											l5 as u32,
										)
									};
									StreamError::LastOperationFailed(e6)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									StreamError::Closed
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
	}
}
