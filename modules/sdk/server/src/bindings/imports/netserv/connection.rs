// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Between whom an HTTP request came. TCP handlers are told so with each connection (`netserv:tcp/types.flow`).
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod flow {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// An address with its port.
	#[derive(Clone)]
	pub struct Address {
		/// IPv4 or IPv6, as text.
		pub ip: _rt::String,
		pub port: u16,
	}
	impl ::core::fmt::Debug for Address {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Address")
				.field("ip", &self.ip)
				.field("port", &self.port)
				.finish()
		}
	}
	/// The connection of a request.
	#[derive(Clone)]
	pub struct Ends {
		/// Who opened it.
		pub client: Address,
		/// Whom it was opened to: the module's own address, or the server of a connection that was taken over.
		pub server: Address,
		/// Whether it was taken over on its way, and not opened to the module.
		pub intercepted: bool,
		/// Whether the client speaks TLS on it.
		pub tls: bool,
	}
	impl ::core::fmt::Debug for Ends {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Ends")
				.field("client", &self.client)
				.field("server", &self.server)
				.field("intercepted", &self.intercepted)
				.field("tls", &self.tls)
				.finish()
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Returns between whom the request came that this instance answers. There is none in a program, in a TCP handler, and in
	/// `netserv module test`.
	#[allow(async_fn_in_trait)]
	pub fn request() -> Option<Ends> {
		unsafe {
			#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
			#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
			struct RetArea(
				[::core::mem::MaybeUninit<u8>; 8 * ::core::mem::size_of::<*const u8>()],
			);
			let mut ret_area = RetArea(
				[::core::mem::MaybeUninit::uninit(); 8
					* ::core::mem::size_of::<*const u8>()],
			);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:connection/flow@1.0.0")]
			unsafe extern "C" {
				#[link_name = "request"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result13 = match l2 {
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
						let bytes5 = _rt::Vec::from_raw_parts(l3.cast(), len5, len5);
						let l6 = i32::from(
							*ptr0
								.add(3 * ::core::mem::size_of::<*const u8>())
								.cast::<u16>(),
						);
						let l7 = *ptr0
							.add(4 * ::core::mem::size_of::<*const u8>())
							.cast::<*mut u8>();
						let l8 = *ptr0
							.add(5 * ::core::mem::size_of::<*const u8>())
							.cast::<usize>();
						let len9 = l8;
						let bytes9 = _rt::Vec::from_raw_parts(l7.cast(), len9, len9);
						let l10 = i32::from(
							*ptr0
								.add(6 * ::core::mem::size_of::<*const u8>())
								.cast::<u16>(),
						);
						let l11 = i32::from(
							*ptr0
								.add(7 * ::core::mem::size_of::<*const u8>())
								.cast::<u8>(),
						);
						let l12 = i32::from(
							*ptr0
								.add(1 + 7 * ::core::mem::size_of::<*const u8>())
								.cast::<u8>(),
						);
						Ends {
							client: Address {
								ip: _rt::string_lift(bytes5),
								port: l6 as u16,
							},
							server: Address {
								ip: _rt::string_lift(bytes9),
								port: l10 as u16,
							},
							intercepted: _rt::bool_lift(l11 as u8),
							tls: _rt::bool_lift(l12 as u8),
						}
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result13
		}
	}
}
