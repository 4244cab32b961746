// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// `netserv:http/hand-over`, with a counter for bytes.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod counted_hand_over {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type OutgoingResponse = super::super::super::wasi::http::types::OutgoingResponse;
	pub type ResponseOutparam = super::super::super::wasi::http::types::ResponseOutparam;
	pub type InputStream = super::super::super::wasi::io::streams::InputStream;
	pub type Bounds = super::super::super::netserv::http1_0_0::hand_over::Bounds;
	pub type Error = super::super::super::netserv::http1_0_0::hand_over::Error;
	#[allow(unused_unsafe, clippy::all)]
	/// Does what `hand-over` of 1.0.0 does, and adds the bytes of the body to a counter of the module's (`netserv:metrics`) as they come from
	/// the stream: of a response that breaks off, those that came. With an empty name, one that is none of a counter, or with as many counters as
	/// there may be, they are not counted.
	#[allow(async_fn_in_trait)]
	pub fn hand_over(
		out: ResponseOutparam,
		head: OutgoingResponse,
		source: InputStream,
		bounds: Bounds,
		counter: &str,
	) -> Result<(), Error> {
		unsafe {
			#[repr(align(1))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
			let super::super::super::netserv::http1_0_0::hand_over::Bounds {
				idle_ms: idle_ms0,
				total_ms: total_ms0,
				least_rate: least_rate0,
			} = bounds;
			let vec1 = counter;
			let ptr1 = vec1.as_ptr().cast::<u8>();
			let len1 = vec1.len();
			let ptr2 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:http/counted-hand-over@1.4.0")]
			unsafe extern "C" {
				#[link_name = "hand-over"]
				fn wit_import3(
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import3(
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: i32,
				_: *mut u8,
				_: usize,
				_: *mut u8,
			) {
				unreachable!()
			}
			wit_import3(
				(&out).take_handle() as i32,
				(&head).take_handle() as i32,
				(&source).take_handle() as i32,
				_rt::as_i32(idle_ms0),
				_rt::as_i32(total_ms0),
				_rt::as_i32(least_rate0),
				ptr1.cast_mut(),
				len1,
				ptr2,
			);
			let l4 = i32::from(*ptr2.add(0).cast::<u8>());
			let result6 = match l4 {
				0 => {
					let e = ();
					Ok(e)
				}
				1 => {
					let e = {
						let l5 = i32::from(*ptr2.add(1).cast::<u8>());
						super::super::super::netserv::http1_0_0::hand_over::Error::_lift(
							l5 as u8,
						)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result6
		}
	}
}
