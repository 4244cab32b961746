// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Messages between the packet part and the server part of one module, in order.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod exchange {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	/// Why a message was not taken.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// 1,024 messages or 256 KiB wait on the other side already.
		Quota,
		/// A message of more than 4 KiB.
		TooLarge,
		/// The module has no packet part.
		NoPeer,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::Quota => "quota",
				Error::TooLarge => "too-large",
				Error::NoPeer => "no-peer",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::Quota => {
					"1,024 messages or 256 KiB wait on the other side already."
				}
				Error::TooLarge => "A message of more than 4 KiB.",
				Error::NoPeer => "The module has no packet part.",
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
				0 => Error::Quota,
				1 => Error::TooLarge,
				2 => Error::NoPeer,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Sends a message to the packet part.
	#[allow(async_fn_in_trait)]
	pub fn send(message: &[u8]) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let vec0 = message;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:messages/exchange@1.0.0")]
			unsafe extern "C" {
				#[link_name = "send"]
				fn wit_import2(_: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2(ptr0.cast_mut(), len0, ptr1);
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
	#[allow(unused_unsafe, clippy::all)]
	/// Takes the oldest message from the packet part, if there is one. Each message is had by one instance only.
	#[allow(async_fn_in_trait)]
	pub fn receive() -> Option<_rt::Vec<u8>> {
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
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:messages/exchange@1.0.0")]
			unsafe extern "C" {
				#[link_name = "receive"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result6 = match l2 {
				0 => None,
				1 => {
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
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result6
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns what is ready when there is a message.
	#[allow(async_fn_in_trait)]
	pub fn subscribe() -> Pollable {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:messages/exchange@1.0.0")]
			unsafe extern "C" {
				#[link_name = "subscribe"]
				fn wit_import0() -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i32 {
				unreachable!()
			}
			let ret = wit_import0();
			super::super::super::wasi::io::poll::Pollable::from_handle(ret as u32)
		}
	}
}
