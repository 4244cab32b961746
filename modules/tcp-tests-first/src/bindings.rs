// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

#[allow(dead_code, clippy::all)]
pub mod netserv {
	pub mod tcp1_0_0 {
		/// What connections are.
		#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
		pub mod types {
			#[used]
			#[doc(hidden)]
			static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
			use super::super::super::_rt;
			/// Names a connection; no number comes twice in the life of an instance.
			pub type Connection = u64;
			/// One end of a connection.
			#[repr(u8)]
			#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
			pub enum Side {
				/// Who opened it.
				Client,
				/// Who it was opened to; there is none for a connection to the module's own address.
				Server,
			}
			impl ::core::fmt::Debug for Side {
				fn fmt(
					&self,
					f: &mut ::core::fmt::Formatter<'_>,
				) -> ::core::fmt::Result {
					match self {
						Side::Client => f.debug_tuple("Side::Client").finish(),
						Side::Server => f.debug_tuple("Side::Server").finish(),
					}
				}
			}
			impl Side {
				#[doc(hidden)]
				pub unsafe fn _lift(val: u8) -> Side {
					if !cfg!(debug_assertions) {
						return unsafe { ::core::mem::transmute(val) };
					}
					match val {
						0 => Side::Client,
						1 => Side::Server,
						_ => panic!("invalid enum discriminant"),
					}
				}
			}
			/// An address with its port.
			#[derive(Clone)]
			pub struct Address {
				pub ip: _rt::String,
				pub port: u16,
			}
			impl ::core::fmt::Debug for Address {
				fn fmt(
					&self,
					f: &mut ::core::fmt::Formatter<'_>,
				) -> ::core::fmt::Result {
					f.debug_struct("Address")
						.field("ip", &self.ip)
						.field("port", &self.port)
						.finish()
				}
			}
			/// Between whom a connection is.
			#[derive(Clone)]
			pub struct Flow {
				pub client: Address,
				pub server: Address,
				/// Whether it was taken over on its way, and not opened to the module.
				pub intercepted: bool,
			}
			impl ::core::fmt::Debug for Flow {
				fn fmt(
					&self,
					f: &mut ::core::fmt::Formatter<'_>,
				) -> ::core::fmt::Result {
					f.debug_struct("Flow")
						.field("client", &self.client)
						.field("server", &self.server)
						.field("intercepted", &self.intercepted)
						.finish()
				}
			}
			/// What to do with a new connection.
			#[repr(u8)]
			#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
			pub enum Decision {
				/// Shows its bytes to the module.
				Accept,
				/// Lets it go on without the module.
				Splice,
				/// Resets it.
				Refuse,
			}
			impl ::core::fmt::Debug for Decision {
				fn fmt(
					&self,
					f: &mut ::core::fmt::Formatter<'_>,
				) -> ::core::fmt::Result {
					match self {
						Decision::Accept => f.debug_tuple("Decision::Accept").finish(),
						Decision::Splice => f.debug_tuple("Decision::Splice").finish(),
						Decision::Refuse => f.debug_tuple("Decision::Refuse").finish(),
					}
				}
			}
			impl Decision {
				#[doc(hidden)]
				pub unsafe fn _lift(val: u8) -> Decision {
					if !cfg!(debug_assertions) {
						return unsafe { ::core::mem::transmute(val) };
					}
					match val {
						0 => Decision::Accept,
						1 => Decision::Splice,
						2 => Decision::Refuse,
						_ => panic!("invalid enum discriminant"),
					}
				}
			}
			/// What to do with bytes.
			#[derive(Clone)]
			pub enum Action {
				/// They go on as they came; to nowhere without another side.
				Pass,
				/// These go on in their place.
				Replace(_rt::Vec<u8>),
				/// They go on, and all later ones of both sides, without the module.
				Splice,
				/// Both sides are closed when what was sent before has gone.
				Close,
			}
			impl ::core::fmt::Debug for Action {
				fn fmt(
					&self,
					f: &mut ::core::fmt::Formatter<'_>,
				) -> ::core::fmt::Result {
					match self {
						Action::Pass => f.debug_tuple("Action::Pass").finish(),
						Action::Replace(e) => {
							f.debug_tuple("Action::Replace").field(e).finish()
						}
						Action::Splice => f.debug_tuple("Action::Splice").finish(),
						Action::Close => f.debug_tuple("Action::Close").finish(),
					}
				}
			}
		}
		/// What a module can do beyond answering.
		#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
		pub mod control {
			#[used]
			#[doc(hidden)]
			static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
			use super::super::super::_rt;
			pub type Connection = super::super::super::netserv::tcp1_0_0::types::Connection;
			pub type Side = super::super::super::netserv::tcp1_0_0::types::Side;
			/// Why nothing was done.
			#[repr(u8)]
			#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
			pub enum Error {
				/// There is no such connection or side.
				NotFound,
				/// The side has not taken what was sent before: 1 MiB waits.
				WouldBlock,
				/// A limit of the module.
				Quota,
			}
			impl Error {
				pub fn name(&self) -> &'static str {
					match self {
						Error::NotFound => "not-found",
						Error::WouldBlock => "would-block",
						Error::Quota => "quota",
					}
				}
				pub fn message(&self) -> &'static str {
					match self {
						Error::NotFound => "There is no such connection or side.",
						Error::WouldBlock => {
							"The side has not taken what was sent before: 1 MiB waits."
						}
						Error::Quota => "A limit of the module.",
					}
				}
			}
			impl ::core::fmt::Debug for Error {
				fn fmt(
					&self,
					f: &mut ::core::fmt::Formatter<'_>,
				) -> ::core::fmt::Result {
					f.debug_struct("Error")
						.field("code", &(*self as i32))
						.field("name", &self.name())
						.field("message", &self.message())
						.finish()
				}
			}
			impl ::core::fmt::Display for Error {
				fn fmt(
					&self,
					f: &mut ::core::fmt::Formatter<'_>,
				) -> ::core::fmt::Result {
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
						0 => Error::NotFound,
						1 => Error::WouldBlock,
						2 => Error::Quota,
						_ => panic!("invalid enum discriminant"),
					}
				}
			}
			#[allow(unused_unsafe, clippy::all)]
			/// Sends bytes to a side.
			#[allow(async_fn_in_trait)]
			pub fn send(id: Connection, to: Side, bytes: &[u8]) -> Result<(), Error> {
				unsafe {
					#[repr(align(1))]
					struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
					let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
					let vec0 = bytes;
					let ptr0 = vec0.as_ptr().cast::<u8>();
					let len0 = vec0.len();
					let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
					#[cfg(target_arch = "wasm32")]
					#[link(wasm_import_module = "netserv:tcp/control@1.0.0")]
					unsafe extern "C" {
						#[link_name = "send"]
						fn wit_import2(_: i64, _: i32, _: *mut u8, _: usize, _: *mut u8);
					}
					#[cfg(not(target_arch = "wasm32"))]
					unsafe extern "C" fn wit_import2(
						_: i64,
						_: i32,
						_: *mut u8,
						_: usize,
						_: *mut u8,
					) {
						unreachable!()
					}
					wit_import2(
						_rt::as_i64(id),
						to.clone() as i32,
						ptr0.cast_mut(),
						len0,
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
			#[allow(unused_unsafe, clippy::all)]
			/// Tells a side that no more comes.
			#[allow(async_fn_in_trait)]
			pub fn shutdown(id: Connection, to: Side) -> Result<(), Error> {
				unsafe {
					#[repr(align(1))]
					struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
					let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
					let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
					#[cfg(target_arch = "wasm32")]
					#[link(wasm_import_module = "netserv:tcp/control@1.0.0")]
					unsafe extern "C" {
						#[link_name = "shutdown"]
						fn wit_import1(_: i64, _: i32, _: *mut u8);
					}
					#[cfg(not(target_arch = "wasm32"))]
					unsafe extern "C" fn wit_import1(_: i64, _: i32, _: *mut u8) {
						unreachable!()
					}
					wit_import1(_rt::as_i64(id), to.clone() as i32, ptr0);
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
			#[allow(unused_unsafe, clippy::all)]
			/// Closes both sides when what was sent before has gone.
			#[allow(async_fn_in_trait)]
			pub fn close(id: Connection) -> Result<(), Error> {
				unsafe {
					#[repr(align(1))]
					struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
					let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
					let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
					#[cfg(target_arch = "wasm32")]
					#[link(wasm_import_module = "netserv:tcp/control@1.0.0")]
					unsafe extern "C" {
						#[link_name = "close"]
						fn wit_import1(_: i64, _: *mut u8);
					}
					#[cfg(not(target_arch = "wasm32"))]
					unsafe extern "C" fn wit_import1(_: i64, _: *mut u8) {
						unreachable!()
					}
					wit_import1(_rt::as_i64(id), ptr0);
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
			#[allow(unused_unsafe, clippy::all)]
			/// Calls `timer` after some milliseconds, then each `period-ms` unless that is 0.
			#[allow(async_fn_in_trait)]
			pub fn set_timer(
				id: u32,
				delay_ms: u64,
				period_ms: u64,
			) -> Result<(), Error> {
				unsafe {
					#[repr(align(1))]
					struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
					let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
					let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
					#[cfg(target_arch = "wasm32")]
					#[link(wasm_import_module = "netserv:tcp/control@1.0.0")]
					unsafe extern "C" {
						#[link_name = "set-timer"]
						fn wit_import1(_: i32, _: i64, _: i64, _: *mut u8);
					}
					#[cfg(not(target_arch = "wasm32"))]
					unsafe extern "C" fn wit_import1(
						_: i32,
						_: i64,
						_: i64,
						_: *mut u8,
					) {
						unreachable!()
					}
					wit_import1(
						_rt::as_i32(&id),
						_rt::as_i64(&delay_ms),
						_rt::as_i64(&period_ms),
						ptr0,
					);
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
			#[allow(unused_unsafe, clippy::all)]
			/// Forgets a timer.
			#[allow(async_fn_in_trait)]
			pub fn cancel_timer(id: u32) -> () {
				unsafe {
					#[cfg(target_arch = "wasm32")]
					#[link(wasm_import_module = "netserv:tcp/control@1.0.0")]
					unsafe extern "C" {
						#[link_name = "cancel-timer"]
						fn wit_import0(_: i32);
					}
					#[cfg(not(target_arch = "wasm32"))]
					unsafe extern "C" fn wit_import0(_: i32) {
						unreachable!()
					}
					wit_import0(_rt::as_i32(&id));
				}
			}
		}
	}
}
#[allow(dead_code, clippy::all)]
pub mod exports {
	pub mod netserv {
		pub mod tcp1_0_0 {
			/// What a module does with connections. One instance has all connections of the module; calls never overlap.
			#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
			pub mod handler {
				#[used]
				#[doc(hidden)]
				static __FORCE_SECTION_REF: fn() = super::super::super::super::__link_custom_section_describing_imports;
				use super::super::super::super::_rt;
				pub type Connection = super::super::super::super::netserv::tcp1_0_0::types::Connection;
				pub type Side = super::super::super::super::netserv::tcp1_0_0::types::Side;
				pub type Flow = super::super::super::super::netserv::tcp1_0_0::types::Flow;
				pub type Decision = super::super::super::super::netserv::tcp1_0_0::types::Decision;
				pub type Action = super::super::super::super::netserv::tcp1_0_0::types::Action;
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_connect_cabi<T_: Guest>(
					arg0: i64,
					arg1: *mut u8,
					arg2: usize,
					arg3: i32,
					arg4: *mut u8,
					arg5: usize,
					arg6: i32,
					arg7: i32,
				) -> i32 {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						let result2 = {
							let len0 = arg2;
							let bytes0 = _rt::Vec::from_raw_parts(
								arg1.cast(),
								len0,
								len0,
							);
							let len1 = arg5;
							let bytes1 = _rt::Vec::from_raw_parts(
								arg4.cast(),
								len1,
								len1,
							);
							T_::connect(
								arg0 as u64,
								super::super::super::super::netserv::tcp1_0_0::types::Flow {
									client: super::super::super::super::netserv::tcp1_0_0::types::Address {
										ip: _rt::string_lift(bytes0),
										port: arg3 as u16,
									},
									server: super::super::super::super::netserv::tcp1_0_0::types::Address {
										ip: _rt::string_lift(bytes1),
										port: arg6 as u16,
									},
									intercepted: _rt::bool_lift(arg7 as u8),
								},
							)
						};
						result2.clone() as i32
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_data_cabi<T_: Guest>(
					arg0: i64,
					arg1: i32,
					arg2: *mut u8,
					arg3: usize,
				) -> *mut u8 {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						let result1 = {
							let len0 = arg3;
							T_::data(
								arg0 as u64,
								super::super::super::super::netserv::tcp1_0_0::types::Side::_lift(
									arg1 as u8,
								),
								<_ as From<
									_rt::Vec<_>,
								>>::from(_rt::Vec::from_raw_parts(arg2.cast(), len0, len0)),
							)
						};
						let ptr2 = (&raw mut _RET_AREA.0).cast::<u8>();
						use super::super::super::super::netserv::tcp1_0_0::types::Action as V4;
						match result1 {
							V4::Pass => {
								*ptr2.add(0).cast::<u8>() = (0i32) as u8;
							}
							V4::Replace(e) => {
								*ptr2.add(0).cast::<u8>() = (1i32) as u8;
								let vec3 = <_ as Into<_rt::Vec<_>>>::into(e)
									.into_boxed_slice();
								let ptr3 = vec3.as_ptr().cast::<u8>();
								let len3 = vec3.len();
								::core::mem::forget(vec3);
								*ptr2
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<usize>() = len3;
								*ptr2
									.add(::core::mem::size_of::<*const u8>())
									.cast::<*mut u8>() = ptr3.cast_mut();
							}
							V4::Splice => {
								*ptr2.add(0).cast::<u8>() = (2i32) as u8;
							}
							V4::Close => {
								*ptr2.add(0).cast::<u8>() = (3i32) as u8;
							}
						}
						ptr2
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case)]
				pub unsafe fn __post_return_data<T_: Guest>(arg0: *mut u8) {
					unsafe {
						let l0 = i32::from(*arg0.add(0).cast::<u8>());
						match l0 {
							0 => {}
							1 => {
								let l1 = *arg0
									.add(::core::mem::size_of::<*const u8>())
									.cast::<*mut u8>();
								let l2 = *arg0
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<usize>();
								let base3 = l1;
								let len3 = l2;
								_rt::cabi_dealloc(base3, len3 * 1, 1);
							}
							2 => {}
							_ => {}
						}
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_end_cabi<T_: Guest>(arg0: i64, arg1: i32) {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						{
							T_::end(
								arg0 as u64,
								super::super::super::super::netserv::tcp1_0_0::types::Side::_lift(
									arg1 as u8,
								),
							)
						};
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_closed_cabi<T_: Guest>(arg0: i64) {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						{ T_::closed(arg0 as u64) };
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_timer_cabi<T_: Guest>(arg0: i32) {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						{ T_::timer(arg0 as u32) };
					}
				}
				pub trait Guest {
					/// A connection was opened.
					#[allow(async_fn_in_trait)]
					fn connect(id: Connection, flow: Flow) -> Decision;
					/// Bytes came, at most 256 KiB at once.
					#[allow(async_fn_in_trait)]
					fn data(id: Connection, source: Side, bytes: _rt::Vec<u8>) -> Action;
					/// A side sends no more. The other side learns of it when this returns: what the module sends there from then on is lost.
					#[allow(async_fn_in_trait)]
					fn end(id: Connection, source: Side) -> ();
					/// A connection is gone. Its number means nothing any more.
					#[allow(async_fn_in_trait)]
					fn closed(id: Connection) -> ();
					/// A timer is due.
					#[allow(async_fn_in_trait)]
					fn timer(id: u32) -> ();
				}
				#[doc(hidden)]
				macro_rules! __export_netserv_tcp_handler_1_0_0_cabi {
					($ty:ident with_types_in $($path_to_types:tt)*) => {
						const _ : () = { #[unsafe (export_name =
						"netserv:tcp/handler@1.0.0#connect")] unsafe extern "C" fn
						export_connect(arg0 : i64, arg1 : * mut u8, arg2 : usize, arg3 :
						i32, arg4 : * mut u8, arg5 : usize, arg6 : i32, arg7 : i32,) ->
						i32 { unsafe { $($path_to_types)*:: _export_connect_cabi::<$ty >
						(arg0, arg1, arg2, arg3, arg4, arg5, arg6, arg7) } } #[unsafe
						(export_name = "netserv:tcp/handler@1.0.0#data")] unsafe extern
						"C" fn export_data(arg0 : i64, arg1 : i32, arg2 : * mut u8, arg3
						: usize,) -> * mut u8 { unsafe { $($path_to_types)*::
						_export_data_cabi::<$ty > (arg0, arg1, arg2, arg3) } } #[unsafe
						(export_name = "cabi_post_netserv:tcp/handler@1.0.0#data")]
						unsafe extern "C" fn _post_return_data(arg0 : * mut u8,) { unsafe
						{ $($path_to_types)*:: __post_return_data::<$ty > (arg0) } }
						#[unsafe (export_name = "netserv:tcp/handler@1.0.0#end")] unsafe
						extern "C" fn export_end(arg0 : i64, arg1 : i32,) { unsafe {
						$($path_to_types)*:: _export_end_cabi::<$ty > (arg0, arg1) } }
						#[unsafe (export_name = "netserv:tcp/handler@1.0.0#closed")]
						unsafe extern "C" fn export_closed(arg0 : i64,) { unsafe {
						$($path_to_types)*:: _export_closed_cabi::<$ty > (arg0) } }
						#[unsafe (export_name = "netserv:tcp/handler@1.0.0#timer")]
						unsafe extern "C" fn export_timer(arg0 : i32,) { unsafe {
						$($path_to_types)*:: _export_timer_cabi::<$ty > (arg0) } } };
					};
				}
				#[doc(hidden)]
				pub(crate) use __export_netserv_tcp_handler_1_0_0_cabi;
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct _RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 3 * ::core::mem::size_of::<*const u8>()],
				);
				static mut _RET_AREA: _RetArea = _RetArea(
					[::core::mem::MaybeUninit::uninit(); 3
						* ::core::mem::size_of::<*const u8>()],
				);
			}
		}
	}
}
mod _rt {
	#![allow(dead_code, unused_imports, clippy::all)]
	pub use alloc_crate::string::String;
	pub use alloc_crate::vec::Vec;
	pub fn as_i64<T: AsI64>(t: T) -> i64 {
		t.as_i64()
	}
	pub trait AsI64 {
		fn as_i64(self) -> i64;
	}
	impl<'a, T: Copy + AsI64> AsI64 for &'a T {
		fn as_i64(self) -> i64 {
			(*self).as_i64()
		}
	}
	impl AsI64 for i64 {
		#[inline]
		fn as_i64(self) -> i64 {
			self as i64
		}
	}
	impl AsI64 for u64 {
		#[inline]
		fn as_i64(self) -> i64 {
			self as i64
		}
	}
	pub unsafe fn invalid_enum_discriminant<T>() -> T {
		if cfg!(debug_assertions) {
			panic!("invalid enum discriminant")
		} else {
			unsafe { core::hint::unreachable_unchecked() }
		}
	}
	pub fn as_i32<T: AsI32>(t: T) -> i32 {
		t.as_i32()
	}
	pub trait AsI32 {
		fn as_i32(self) -> i32;
	}
	impl<'a, T: Copy + AsI32> AsI32 for &'a T {
		fn as_i32(self) -> i32 {
			(*self).as_i32()
		}
	}
	impl AsI32 for i32 {
		#[inline]
		fn as_i32(self) -> i32 {
			self as i32
		}
	}
	impl AsI32 for u32 {
		#[inline]
		fn as_i32(self) -> i32 {
			self as i32
		}
	}
	impl AsI32 for i16 {
		#[inline]
		fn as_i32(self) -> i32 {
			self as i32
		}
	}
	impl AsI32 for u16 {
		#[inline]
		fn as_i32(self) -> i32 {
			self as i32
		}
	}
	impl AsI32 for i8 {
		#[inline]
		fn as_i32(self) -> i32 {
			self as i32
		}
	}
	impl AsI32 for u8 {
		#[inline]
		fn as_i32(self) -> i32 {
			self as i32
		}
	}
	impl AsI32 for char {
		#[inline]
		fn as_i32(self) -> i32 {
			self as i32
		}
	}
	impl AsI32 for usize {
		#[inline]
		fn as_i32(self) -> i32 {
			self as i32
		}
	}
	#[cfg(target_arch = "wasm32")]
	pub fn run_ctors_once() {
		wit_bindgen::rt::run_ctors_once();
	}
	pub unsafe fn string_lift(bytes: Vec<u8>) -> String {
		if cfg!(debug_assertions) {
			String::from_utf8(bytes).unwrap()
		} else {
			unsafe { String::from_utf8_unchecked(bytes) }
		}
	}
	pub unsafe fn bool_lift(val: u8) -> bool {
		if cfg!(debug_assertions) {
			match val {
				0 => false,
				1 => true,
				_ => panic!("invalid bool discriminant"),
			}
		} else {
			val != 0
		}
	}
	pub unsafe fn cabi_dealloc(ptr: *mut u8, size: usize, align: usize) {
		if size == 0 {
			return;
		}
		unsafe {
			let layout = alloc::Layout::from_size_align_unchecked(size, align);
			alloc::dealloc(ptr, layout);
		}
	}
	extern crate alloc as alloc_crate;
	pub use alloc_crate::alloc;
}
/// Generates `#[unsafe(no_mangle)]` functions to export the specified type as
/// the root implementation of all generated traits.
///
/// For more information see the documentation of `wit_bindgen::generate!`.
///
/// ```rust
/// # macro_rules! export{ ($($t:tt)*) => (); }
/// # trait Guest {}
/// struct MyType;
///
/// impl Guest for MyType {
///     // ...
/// }
///
/// export!(MyType);
/// ```
#[allow(unused_macros)]
#[doc(hidden)]
macro_rules! __export_first_impl {
	($ty:ident) => {
		self::export!($ty with_types_in self);
	};
	($ty:ident with_types_in $($path_to_types_root:tt)*) => {
		$($path_to_types_root)*::
		exports::netserv::tcp1_0_0::handler::__export_netserv_tcp_handler_1_0_0_cabi!($ty
		with_types_in $($path_to_types_root)*:: exports::netserv::tcp1_0_0::handler);
	};
}
#[doc(inline)]
pub(crate) use __export_first_impl as export;
#[cfg(target_arch = "wasm32")]
#[unsafe(
	link_section = "component-type:wit-bindgen:0.57.1:netserv:tests-first:first:encoded world"
)]
#[doc(hidden)]
#[allow(clippy::octal_escapes)]
pub static __WIT_BINDGEN_COMPONENT_TYPE: [u8; 962] = *b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07\xc6\x06\x01A\x02\x01\
A\x0b\x01B\x0d\x01w\x04\0\x0aconnection\x03\0\0\x01m\x02\x06client\x06server\x04\
\0\x04side\x03\0\x02\x01r\x02\x02ips\x04port{\x04\0\x07address\x03\0\x04\x01r\x03\
\x06client\x05\x06server\x05\x0bintercepted\x7f\x04\0\x04flow\x03\0\x06\x01m\x03\
\x06accept\x06splice\x06refuse\x04\0\x08decision\x03\0\x08\x01p}\x01q\x04\x04pas\
s\0\0\x07replace\x01\x0a\0\x06splice\0\0\x05close\0\0\x04\0\x06action\x03\0\x0b\x03\
\0\x17netserv:tcp/types@1.0.0\x05\0\x02\x03\0\0\x0aconnection\x02\x03\0\0\x04sid\
e\x01B\x12\x02\x03\x02\x01\x01\x04\0\x0aconnection\x03\0\0\x02\x03\x02\x01\x02\x04\
\0\x04side\x03\0\x02\x01m\x03\x09not-found\x0bwould-block\x05quota\x04\0\x05erro\
r\x03\0\x04\x01p}\x01j\0\x01\x05\x01@\x03\x02id\x01\x02to\x03\x05bytes\x06\0\x07\
\x04\0\x04send\x01\x08\x01@\x02\x02id\x01\x02to\x03\0\x07\x04\0\x08shutdown\x01\x09\
\x01@\x01\x02id\x01\0\x07\x04\0\x05close\x01\x0a\x01@\x03\x02idy\x08delay-msw\x09\
period-msw\0\x07\x04\0\x09set-timer\x01\x0b\x01@\x01\x02idy\x01\0\x04\0\x0ccance\
l-timer\x01\x0c\x03\0\x19netserv:tcp/control@1.0.0\x05\x03\x02\x03\0\0\x04flow\x02\
\x03\0\0\x08decision\x02\x03\0\0\x06action\x01B\x15\x02\x03\x02\x01\x01\x04\0\x0a\
connection\x03\0\0\x02\x03\x02\x01\x02\x04\0\x04side\x03\0\x02\x02\x03\x02\x01\x04\
\x04\0\x04flow\x03\0\x04\x02\x03\x02\x01\x05\x04\0\x08decision\x03\0\x06\x02\x03\
\x02\x01\x06\x04\0\x06action\x03\0\x08\x01@\x02\x02id\x01\x04flow\x05\0\x07\x04\0\
\x07connect\x01\x0a\x01p}\x01@\x03\x02id\x01\x06source\x03\x05bytes\x0b\0\x09\x04\
\0\x04data\x01\x0c\x01@\x02\x02id\x01\x06source\x03\x01\0\x04\0\x03end\x01\x0d\x01\
@\x01\x02id\x01\x01\0\x04\0\x06closed\x01\x0e\x01@\x01\x02idy\x01\0\x04\0\x05tim\
er\x01\x0f\x04\0\x19netserv:tcp/handler@1.0.0\x05\x07\x04\0\x19netserv:tests-fir\
st/first\x04\0\x0b\x0b\x01\0\x05first\x03\0\0\0G\x09producers\x01\x0cprocessed-b\
y\x02\x0dwit-component\x070.247.0\x10wit-bindgen-rust\x060.57.1";
#[inline(never)]
#[doc(hidden)]
pub fn __link_custom_section_describing_imports() {
	wit_bindgen::rt::maybe_link_cabi_realloc();
}
