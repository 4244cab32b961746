// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Responses that the node sends by itself while the instance that began them is gone: server-sent events, downloads of an hour.
///
/// The instance gives the head of its response and a stream, and may end. The node reads the stream as fast as the client takes it and
/// holds at most 32 KiB of it. What takes it is no request under way any more: `request-ms` and `requests` of the module's limits do not
/// bound it, nor does it end with the version that began it in an upgrade.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod hand_over {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type OutgoingResponse = super::super::super::wasi::http::types::OutgoingResponse;
	pub type ResponseOutparam = super::super::super::wasi::http::types::ResponseOutparam;
	pub type InputStream = super::super::super::wasi::io::streams::InputStream;
	/// When the node gives up. The response is broken off then, so that the client sees that it is not whole. 0 stands for the most
	/// that there may be, of the rate for the least.
	#[repr(C)]
	#[derive(Clone, Copy)]
	pub struct Bounds {
		/// Milliseconds that the stream may be silent: one hour at most.
		pub idle_ms: u32,
		/// Milliseconds that all of it may take: 24 hours at most.
		pub total_ms: u32,
		/// Bytes that the client has to take in a second while there are some for it, at least 1. It may lag behind that, or take
		/// nothing at all, for five minutes, or for the seconds that the module's property `client-patience-s` says (1 to 3600). A client that has
		/// taken nothing for ten seconds may have to give way while there is little room for others.
		pub least_rate: u32,
	}
	impl ::core::fmt::Debug for Bounds {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Bounds")
				.field("idle-ms", &self.idle_ms)
				.field("total-ms", &self.total_ms)
				.field("least-rate", &self.least_rate)
				.finish()
		}
	}
	/// Why the client gets an answer of the node's own.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// The module has 8,192 such responses already: the client gets 503.
		Quota,
		/// The head was asked for its body before: the client gets 500.
		HasBody,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::Quota => "quota",
				Error::HasBody => "has-body",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::Quota => {
					"The module has 8,192 such responses already: the client gets 503."
				}
				Error::HasBody => {
					"The head was asked for its body before: the client gets 500."
				}
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
				1 => Error::HasBody,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Has the node answer a request with this head and what the stream has, to its end. If the stream fails, the response is broken
	/// off. If the head has `content-length`, that counts: what the stream has beyond it is left out, and one that is shorter breaks
	/// the response off.
	///
	/// Any stream will do: of a topic (`netserv:channel`), an entry of the cache (`netserv:cache`), the answer of another server
	/// (`wasi:http`), an output of a media job (`netserv:media`). Such a job goes on when the component drops it, and ends when nobody
	/// has the output any more; its failure is the stream's. It traps if something was made of the stream that is still there, such as a pollable.
	#[allow(async_fn_in_trait)]
	pub fn hand_over(
		out: ResponseOutparam,
		head: OutgoingResponse,
		source: InputStream,
		bounds: Bounds,
	) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let Bounds {
				idle_ms: idle_ms0,
				total_ms: total_ms0,
				least_rate: least_rate0,
			} = bounds;
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:http/hand-over@1.0.0")]
			unsafe extern "C" {
				#[link_name = "hand-over"]
				fn wit_import2(
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import2(
				(&out).take_handle() as i32,
				(&head).take_handle() as i32,
				(&source).take_handle() as i32,
				_rt::as_i32(idle_ms0),
				_rt::as_i32(total_ms0),
				_rt::as_i32(least_rate0),
				ptr1,
			);
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
