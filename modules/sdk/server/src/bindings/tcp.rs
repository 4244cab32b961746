// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

#[allow(unfulfilled_lint_expectations, unused_imports)]
use super::imports::netserv::tcp1_1_0::types as __with_name0;
#[allow(dead_code, clippy::all)]
pub mod exports {
	pub mod netserv {
		pub mod tcp1_1_0 {
			/// What a module does with connections. One instance has all connections of the module; calls never overlap.
			#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
			pub mod handler {
				#[used]
				#[doc(hidden)]
				static __FORCE_SECTION_REF: fn() = super::super::super::super::__link_custom_section_describing_imports;
				use super::super::super::super::_rt;
				pub type Connection = super::super::super::super::__with_name0::Connection;
				pub type Side = super::super::super::super::__with_name0::Side;
				pub type Flow = super::super::super::super::__with_name0::Flow;
				pub type Decision = super::super::super::super::__with_name0::Decision;
				pub type Action = super::super::super::super::__with_name0::Action;
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
								super::super::super::super::__with_name0::Flow {
									client: super::super::super::super::__with_name0::Address {
										ip: _rt::string_lift(bytes0),
										port: arg3 as u16,
									},
									server: super::super::super::super::__with_name0::Address {
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
				pub unsafe fn _export_opened_cabi<T_: Guest>(arg0: i64) {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						{ T_::opened(arg0 as u64) };
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
								super::super::super::super::__with_name0::Side::_lift(
									arg1 as u8,
								),
								<_ as From<
									_rt::Vec<_>,
								>>::from(_rt::Vec::from_raw_parts(arg2.cast(), len0, len0)),
							)
						};
						let ptr2 = (&raw mut _RET_AREA.0).cast::<u8>();
						use super::super::super::super::__with_name0::Action as V4;
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
								super::super::super::super::__with_name0::Side::_lift(
									arg1 as u8,
								),
							)
						};
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_room_cabi<T_: Guest>(arg0: i64, arg1: i32) {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						{
							T_::room(
								arg0 as u64,
								super::super::super::super::__with_name0::Side::_lift(
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
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_ready_cabi<T_: Guest>(arg0: i32) {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						{ T_::ready(arg0 as u32) };
					}
				}
				pub trait Guest {
					/// A connection came in.
					#[allow(async_fn_in_trait)]
					fn connect(id: Connection, flow: Flow) -> Decision;
					/// A connection that the module asked for by `control.open` is there. If it cannot be, `closed` comes in place of this.
					#[allow(async_fn_in_trait)]
					fn opened(id: Connection) -> ();
					/// Bytes came, at most 256 KiB at once.
					#[allow(async_fn_in_trait)]
					fn data(id: Connection, source: Side, bytes: _rt::Vec<u8>) -> Action;
					/// A side sends no more. The other side learns of it when this returns: what the module sends there from then on is lost.
					#[allow(async_fn_in_trait)]
					fn end(id: Connection, source: Side) -> ();
					/// `send` to this side said `would-block`, and there is room for those bytes. It comes once for each time.
					#[allow(async_fn_in_trait)]
					fn room(id: Connection, to: Side) -> ();
					/// A connection is gone. Its number means nothing any more.
					#[allow(async_fn_in_trait)]
					fn closed(id: Connection) -> ();
					/// A timer is due.
					#[allow(async_fn_in_trait)]
					fn timer(id: u32) -> ();
					/// What was watched with this token is ready, and is watched no more.
					#[allow(async_fn_in_trait)]
					fn ready(token: u32) -> ();
				}
				#[doc(hidden)]
				#[macro_export]
				macro_rules! __export_netserv_tcp_handler_1_1_0_cabi {
					($ty:ident with_types_in $($path_to_types:tt)*) => {
						const _ : () = { #[unsafe (export_name =
						"netserv:tcp/handler@1.1.0#connect")] unsafe extern "C" fn
						export_connect(arg0 : i64, arg1 : * mut u8, arg2 : usize, arg3 :
						i32, arg4 : * mut u8, arg5 : usize, arg6 : i32, arg7 : i32,) ->
						i32 { unsafe { $($path_to_types)*:: _export_connect_cabi::<$ty >
						(arg0, arg1, arg2, arg3, arg4, arg5, arg6, arg7) } } #[unsafe
						(export_name = "netserv:tcp/handler@1.1.0#opened")] unsafe extern
						"C" fn export_opened(arg0 : i64,) { unsafe { $($path_to_types)*::
						_export_opened_cabi::<$ty > (arg0) } } #[unsafe (export_name =
						"netserv:tcp/handler@1.1.0#data")] unsafe extern "C" fn
						export_data(arg0 : i64, arg1 : i32, arg2 : * mut u8, arg3 :
						usize,) -> * mut u8 { unsafe { $($path_to_types)*::
						_export_data_cabi::<$ty > (arg0, arg1, arg2, arg3) } } #[unsafe
						(export_name = "cabi_post_netserv:tcp/handler@1.1.0#data")]
						unsafe extern "C" fn _post_return_data(arg0 : * mut u8,) { unsafe
						{ $($path_to_types)*:: __post_return_data::<$ty > (arg0) } }
						#[unsafe (export_name = "netserv:tcp/handler@1.1.0#end")] unsafe
						extern "C" fn export_end(arg0 : i64, arg1 : i32,) { unsafe {
						$($path_to_types)*:: _export_end_cabi::<$ty > (arg0, arg1) } }
						#[unsafe (export_name = "netserv:tcp/handler@1.1.0#room")] unsafe
						extern "C" fn export_room(arg0 : i64, arg1 : i32,) { unsafe {
						$($path_to_types)*:: _export_room_cabi::<$ty > (arg0, arg1) } }
						#[unsafe (export_name = "netserv:tcp/handler@1.1.0#closed")]
						unsafe extern "C" fn export_closed(arg0 : i64,) { unsafe {
						$($path_to_types)*:: _export_closed_cabi::<$ty > (arg0) } }
						#[unsafe (export_name = "netserv:tcp/handler@1.1.0#timer")]
						unsafe extern "C" fn export_timer(arg0 : i32,) { unsafe {
						$($path_to_types)*:: _export_timer_cabi::<$ty > (arg0) } }
						#[unsafe (export_name = "netserv:tcp/handler@1.1.0#ready")]
						unsafe extern "C" fn export_ready(arg0 : i32,) { unsafe {
						$($path_to_types)*:: _export_ready_cabi::<$ty > (arg0) } } };
					};
				}
				#[doc(hidden)]
				pub use __export_netserv_tcp_handler_1_1_0_cabi;
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
			/// How a module's connections go on with its next version; a module need not export it. While one is handed over, no other event of
			/// either version happens, and it keeps its number, its sides, what waits to be sent, and what is paused. Timers and what is
			/// watched end with the old version.
			#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
			pub mod hand_over {
				#[used]
				#[doc(hidden)]
				static __FORCE_SECTION_REF: fn() = super::super::super::super::__link_custom_section_describing_imports;
				use super::super::super::super::_rt;
				pub type Connection = super::super::super::super::__with_name0::Connection;
				pub type Flow = super::super::super::super::__with_name0::Flow;
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_export_connection_cabi<T_: Guest>(
					arg0: i64,
				) -> *mut u8 {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						let result0 = { T_::export_connection(arg0 as u64) };
						let ptr1 = (&raw mut _RET_AREA.0).cast::<u8>();
						match result0 {
							Some(e) => {
								*ptr1.add(0).cast::<u8>() = (1i32) as u8;
								let vec2 = <_ as Into<_rt::Vec<_>>>::into(e)
									.into_boxed_slice();
								let ptr2 = vec2.as_ptr().cast::<u8>();
								let len2 = vec2.len();
								::core::mem::forget(vec2);
								*ptr1
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<usize>() = len2;
								*ptr1
									.add(::core::mem::size_of::<*const u8>())
									.cast::<*mut u8>() = ptr2.cast_mut();
							}
							None => {
								*ptr1.add(0).cast::<u8>() = (0i32) as u8;
							}
						};
						ptr1
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case)]
				pub unsafe fn __post_return_export_connection<T_: Guest>(arg0: *mut u8) {
					unsafe {
						let l0 = i32::from(*arg0.add(0).cast::<u8>());
						match l0 {
							0 => {}
							_ => {
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
						}
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_import_connection_cabi<T_: Guest>(
					arg0: i64,
					arg1: i32,
					arg2: *mut u8,
					arg3: usize,
					arg4: i32,
					arg5: *mut u8,
					arg6: usize,
					arg7: i32,
					arg8: i32,
					arg9: *mut u8,
					arg10: usize,
				) -> i32 {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						let result3 = {
							let len2 = arg10;
							T_::import_connection(
								arg0 as u64,
								match arg1 {
									0 => None,
									1 => {
										let e = {
											let len0 = arg3;
											let bytes0 = _rt::Vec::from_raw_parts(
												arg2.cast(),
												len0,
												len0,
											);
											let len1 = arg6;
											let bytes1 = _rt::Vec::from_raw_parts(
												arg5.cast(),
												len1,
												len1,
											);
											super::super::super::super::__with_name0::Flow {
												client: super::super::super::super::__with_name0::Address {
													ip: _rt::string_lift(bytes0),
													port: arg4 as u16,
												},
												server: super::super::super::super::__with_name0::Address {
													ip: _rt::string_lift(bytes1),
													port: arg7 as u16,
												},
												intercepted: _rt::bool_lift(arg8 as u8),
											}
										};
										Some(e)
									}
									_ => _rt::invalid_enum_discriminant(),
								},
								<_ as From<
									_rt::Vec<_>,
								>>::from(_rt::Vec::from_raw_parts(arg9.cast(), len2, len2)),
							)
						};
						match result3 {
							true => 1,
							false => 0,
						}
					}
				}
				pub trait Guest {
					/// Returns what the next version has to know of a connection, at most 64 KiB; nothing, or more, if it is to end with this
					/// version, within 5 s. This version goes on with it if the next one does not take it, and hears of it no more if that does.
					#[allow(async_fn_in_trait)]
					fn export_connection(id: Connection) -> Option<_rt::Vec<u8>>;
					/// Takes a connection of the version before with what that said of it. There is no flow for one that the module opened. All that are
					/// not taken within 2 s stay with the old version.
					#[allow(async_fn_in_trait)]
					fn import_connection(
						id: Connection,
						flow: Option<Flow>,
						state: _rt::Vec<u8>,
					) -> bool;
				}
				#[doc(hidden)]
				#[macro_export]
				macro_rules! __export_netserv_tcp_hand_over_1_1_0_cabi {
					($ty:ident with_types_in $($path_to_types:tt)*) => {
						const _ : () = { #[unsafe (export_name =
						"netserv:tcp/hand-over@1.1.0#export-connection")] unsafe extern
						"C" fn export_export_connection(arg0 : i64,) -> * mut u8 { unsafe
						{ $($path_to_types)*:: _export_export_connection_cabi::<$ty >
						(arg0) } } #[unsafe (export_name =
						"cabi_post_netserv:tcp/hand-over@1.1.0#export-connection")]
						unsafe extern "C" fn _post_return_export_connection(arg0 : * mut
						u8,) { unsafe { $($path_to_types)*::
						__post_return_export_connection::<$ty > (arg0) } } #[unsafe
						(export_name = "netserv:tcp/hand-over@1.1.0#import-connection")]
						unsafe extern "C" fn export_import_connection(arg0 : i64, arg1 :
						i32, arg2 : * mut u8, arg3 : usize, arg4 : i32, arg5 : * mut u8,
						arg6 : usize, arg7 : i32, arg8 : i32, arg9 : * mut u8, arg10 :
						usize,) -> i32 { unsafe { $($path_to_types)*::
						_export_import_connection_cabi::<$ty > (arg0, arg1, arg2, arg3,
						arg4, arg5, arg6, arg7, arg8, arg9, arg10) } } };
					};
				}
				#[doc(hidden)]
				pub use __export_netserv_tcp_hand_over_1_1_0_cabi;
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
	#[cfg(target_arch = "wasm32")]
	pub fn run_ctors_once() {
		wit_bindgen::rt::run_ctors_once();
	}
	pub use alloc_crate::vec::Vec;
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
	pub unsafe fn invalid_enum_discriminant<T>() -> T {
		if cfg!(debug_assertions) {
			panic!("invalid enum discriminant")
		} else {
			unsafe { core::hint::unreachable_unchecked() }
		}
	}
	extern crate alloc as alloc_crate;
	pub use alloc_crate::string::String;
	pub use alloc_crate::alloc;
}
/// Generates `#[unsafe(no_mangle)]` functions to export the specified type as
/// the root implementation of all generated traits.
///
/// For more information see the documentation of `wit_bindgen::generate!`.
///
/// ```rust
/// # macro_rules! export_tcp{ ($($t:tt)*) => (); }
/// # trait Guest {}
/// struct MyType;
///
/// impl Guest for MyType {
///     // ...
/// }
///
/// export_tcp!(MyType);
/// ```
#[allow(unused_macros)]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_tcp_impl {
	($ty:ident) => {
		netserv_server_sdk::bindings::tcp::export_tcp!($ty with_types_in
		netserv_server_sdk::bindings::tcp);
	};
	($ty:ident with_types_in $($path_to_types_root:tt)*) => {
		$($path_to_types_root)*::
		exports::netserv::tcp1_1_0::handler::__export_netserv_tcp_handler_1_1_0_cabi!($ty
		with_types_in $($path_to_types_root)*:: exports::netserv::tcp1_1_0::handler);
		$($path_to_types_root)*::
		exports::netserv::tcp1_1_0::hand_over::__export_netserv_tcp_hand_over_1_1_0_cabi!($ty
		with_types_in $($path_to_types_root)*:: exports::netserv::tcp1_1_0::hand_over);
		const _ : () = { #[cfg(target_arch = "wasm32")] #[unsafe (link_section =
		"component-type:wit-bindgen:0.57.1:netserv:sdk-tcp:tcp:imports and exports")]
		#[doc(hidden)] #[allow(clippy::octal_escapes)] pub static
		__WIT_BINDGEN_COMPONENT_TYPE : [u8; 907] = *
		b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07\x91\x06\x01A\x02\x01\
A\x0b\x01B\x0d\x01w\x04\0\x0aconnection\x03\0\0\x01m\x02\x06client\x06server\x04\
\0\x04side\x03\0\x02\x01r\x02\x02ips\x04port{\x04\0\x07address\x03\0\x04\x01r\x03\
\x06client\x05\x06server\x05\x0bintercepted\x7f\x04\0\x04flow\x03\0\x06\x01m\x04\
\x06accept\x06splice\x06refuse\x05serve\x04\0\x08decision\x03\0\x08\x01p}\x01q\x04\
\x04pass\0\0\x07replace\x01\x0a\0\x06splice\0\0\x05close\0\0\x04\0\x06action\x03\
\0\x0b\x03\0\x17netserv:tcp/types@1.1.0\x05\0\x02\x03\0\0\x0aconnection\x02\x03\0\
\0\x04side\x02\x03\0\0\x04flow\x02\x03\0\0\x08decision\x02\x03\0\0\x06action\x01\
B\x1a\x02\x03\x02\x01\x01\x04\0\x0aconnection\x03\0\0\x02\x03\x02\x01\x02\x04\0\x04\
side\x03\0\x02\x02\x03\x02\x01\x03\x04\0\x04flow\x03\0\x04\x02\x03\x02\x01\x04\x04\
\0\x08decision\x03\0\x06\x02\x03\x02\x01\x05\x04\0\x06action\x03\0\x08\x01@\x02\x02\
id\x01\x04flow\x05\0\x07\x04\0\x07connect\x01\x0a\x01@\x01\x02id\x01\x01\0\x04\0\
\x06opened\x01\x0b\x01p}\x01@\x03\x02id\x01\x06source\x03\x05bytes\x0c\0\x09\x04\
\0\x04data\x01\x0d\x01@\x02\x02id\x01\x06source\x03\x01\0\x04\0\x03end\x01\x0e\x01\
@\x02\x02id\x01\x02to\x03\x01\0\x04\0\x04room\x01\x0f\x04\0\x06closed\x01\x0b\x01\
@\x01\x02idy\x01\0\x04\0\x05timer\x01\x10\x01@\x01\x05tokeny\x01\0\x04\0\x05read\
y\x01\x11\x04\0\x19netserv:tcp/handler@1.1.0\x05\x06\x01B\x0b\x02\x03\x02\x01\x01\
\x04\0\x0aconnection\x03\0\0\x02\x03\x02\x01\x03\x04\0\x04flow\x03\0\x02\x01p}\x01\
k\x04\x01@\x01\x02id\x01\0\x05\x04\0\x11export-connection\x01\x06\x01k\x03\x01@\x03\
\x02id\x01\x04flow\x07\x05state\x04\0\x7f\x04\0\x11import-connection\x01\x08\x04\
\0\x1bnetserv:tcp/hand-over@1.1.0\x05\x07\x04\0\x13netserv:sdk-tcp/tcp\x04\0\x0b\
\x09\x01\0\x03tcp\x03\0\0\0G\x09producers\x01\x0cprocessed-by\x02\x0dwit-compone\
nt\x070.247.0\x10wit-bindgen-rust\x060.57.1";
		};
	};
}
#[doc(inline)]
pub use __export_tcp_impl as export_tcp;
#[cfg(target_arch = "wasm32")]
#[unsafe(
	link_section = "component-type:wit-bindgen:0.57.1:netserv:sdk-tcp:tcp-with-all-of-its-exports-removed:encoded world"
)]
#[doc(hidden)]
#[allow(clippy::octal_escapes)]
pub static __WIT_BINDGEN_COMPONENT_TYPE: [u8; 457] = *b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07\xaf\x02\x01A\x02\x01\
A\x02\x01B\x0d\x01w\x04\0\x0aconnection\x03\0\0\x01m\x02\x06client\x06server\x04\
\0\x04side\x03\0\x02\x01r\x02\x02ips\x04port{\x04\0\x07address\x03\0\x04\x01r\x03\
\x06client\x05\x06server\x05\x0bintercepted\x7f\x04\0\x04flow\x03\0\x06\x01m\x04\
\x06accept\x06splice\x06refuse\x05serve\x04\0\x08decision\x03\0\x08\x01p}\x01q\x04\
\x04pass\0\0\x07replace\x01\x0a\0\x06splice\0\0\x05close\0\0\x04\0\x06action\x03\
\0\x0b\x03\0\x17netserv:tcp/types@1.1.0\x05\0\x04\03netserv:sdk-tcp/tcp-with-all\
-of-its-exports-removed\x04\0\x0b)\x01\0#tcp-with-all-of-its-exports-removed\x03\
\0\0\0G\x09producers\x01\x0cprocessed-by\x02\x0dwit-component\x070.247.0\x10wit-\
bindgen-rust\x060.57.1";
#[inline(never)]
#[doc(hidden)]
pub fn __link_custom_section_describing_imports() {
	wit_bindgen::rt::maybe_link_cabi_realloc();
}
