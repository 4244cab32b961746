// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

#[allow(dead_code, clippy::all)]
pub mod exports {
	pub mod netserv {
		pub mod state {
			/// What a module carries from one node to another. Its kv entries always go; a module that has more exports this, and need not.
			///
			/// The user has the state exported where the module runs, and names it in the SETUP for another node (docs/blocks.md, "State that
			/// moves"). What comes is of the same module and the same `state-schema`, or is refused before anything is called. In all,
			/// with kv, a state has at most 64 MiB. Write numbers in a fixed order and width: the other node may have another processor,
			/// and the module there may be a packet module's or a bundle's twin.
			///
			/// A module that handles TCP connections is called in its one instance, between events; one that answers HTTP requests in a fresh
			/// instance. Each call has 5 s.
			#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
			pub mod carrier {
				#[used]
				#[doc(hidden)]
				static __FORCE_SECTION_REF: fn() = super::super::super::super::__link_custom_section_describing_imports;
				use super::super::super::super::_rt;
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_export_state_cabi<T_: Guest>() -> *mut u8 {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						let result0 = { T_::export_state() };
						let ptr1 = (&raw mut _RET_AREA.0).cast::<u8>();
						match result0 {
							Ok(e) => {
								*ptr1.add(0).cast::<u8>() = (0i32) as u8;
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
							Err(e) => {
								*ptr1.add(0).cast::<u8>() = (1i32) as u8;
								let vec3 = (e.into_bytes()).into_boxed_slice();
								let ptr3 = vec3.as_ptr().cast::<u8>();
								let len3 = vec3.len();
								::core::mem::forget(vec3);
								*ptr1
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<usize>() = len3;
								*ptr1
									.add(::core::mem::size_of::<*const u8>())
									.cast::<*mut u8>() = ptr3.cast_mut();
							}
						};
						ptr1
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case)]
				pub unsafe fn __post_return_export_state<T_: Guest>(arg0: *mut u8) {
					unsafe {
						let l0 = i32::from(*arg0.add(0).cast::<u8>());
						match l0 {
							0 => {
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
							_ => {
								let l4 = *arg0
									.add(::core::mem::size_of::<*const u8>())
									.cast::<*mut u8>();
								let l5 = *arg0
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<usize>();
								_rt::cabi_dealloc(l4, l5, 1);
							}
						}
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_import_state_cabi<T_: Guest>(
					arg0: *mut u8,
					arg1: usize,
				) -> *mut u8 {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						let result1 = {
							let len0 = arg1;
							T_::import_state(
								<_ as From<
									_rt::Vec<_>,
								>>::from(_rt::Vec::from_raw_parts(arg0.cast(), len0, len0)),
							)
						};
						let ptr2 = (&raw mut _RET_AREA.0).cast::<u8>();
						match result1 {
							Ok(_) => {
								*ptr2.add(0).cast::<u8>() = (0i32) as u8;
							}
							Err(e) => {
								*ptr2.add(0).cast::<u8>() = (1i32) as u8;
								let vec3 = (e.into_bytes()).into_boxed_slice();
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
						};
						ptr2
					}
				}
				#[doc(hidden)]
				#[allow(non_snake_case)]
				pub unsafe fn __post_return_import_state<T_: Guest>(arg0: *mut u8) {
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
								_rt::cabi_dealloc(l1, l2, 1);
							}
						}
					}
				}
				pub trait Guest {
					/// Returns what the module has to know elsewhere, or why it cannot be said now, in a line for the user. It goes on either way; if
					/// an instance that handles connections traps, it ends as after any trap.
					#[allow(async_fn_in_trait)]
					fn export_state() -> Result<_rt::Vec<u8>, _rt::String>;
					/// Takes what another instance said, before the module gets its first connection or request. Its kv entries are there
					/// already. If it refuses, in a line for the user, or traps, it is not installed, and what ran before it goes on.
					#[allow(async_fn_in_trait)]
					fn import_state(state: _rt::Vec<u8>) -> Result<(), _rt::String>;
				}
				#[doc(hidden)]
				#[macro_export]
				macro_rules! __export_netserv_state_carrier_1_0_0_cabi {
					($ty:ident with_types_in $($path_to_types:tt)*) => {
						const _ : () = { #[unsafe (export_name =
						"netserv:state/carrier@1.0.0#export-state")] unsafe extern "C" fn
						export_export_state() -> * mut u8 { unsafe { $($path_to_types)*::
						_export_export_state_cabi::<$ty > () } } #[unsafe (export_name =
						"cabi_post_netserv:state/carrier@1.0.0#export-state")] unsafe
						extern "C" fn _post_return_export_state(arg0 : * mut u8,) {
						unsafe { $($path_to_types)*:: __post_return_export_state::<$ty >
						(arg0) } } #[unsafe (export_name =
						"netserv:state/carrier@1.0.0#import-state")] unsafe extern "C" fn
						export_import_state(arg0 : * mut u8, arg1 : usize,) -> * mut u8 {
						unsafe { $($path_to_types)*:: _export_import_state_cabi::<$ty >
						(arg0, arg1) } } #[unsafe (export_name =
						"cabi_post_netserv:state/carrier@1.0.0#import-state")] unsafe
						extern "C" fn _post_return_import_state(arg0 : * mut u8,) {
						unsafe { $($path_to_types)*:: __post_return_import_state::<$ty >
						(arg0) } } };
					};
				}
				#[doc(hidden)]
				pub use __export_netserv_state_carrier_1_0_0_cabi;
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
	pub unsafe fn cabi_dealloc(ptr: *mut u8, size: usize, align: usize) {
		if size == 0 {
			return;
		}
		unsafe {
			let layout = alloc::Layout::from_size_align_unchecked(size, align);
			alloc::dealloc(ptr, layout);
		}
	}
	pub use alloc_crate::string::String;
	extern crate alloc as alloc_crate;
	pub use alloc_crate::alloc;
}
/// Generates `#[unsafe(no_mangle)]` functions to export the specified type as
/// the root implementation of all generated traits.
///
/// For more information see the documentation of `wit_bindgen::generate!`.
///
/// ```rust
/// # macro_rules! export_state{ ($($t:tt)*) => (); }
/// # trait Guest {}
/// struct MyType;
///
/// impl Guest for MyType {
///     // ...
/// }
///
/// export_state!(MyType);
/// ```
#[allow(unused_macros)]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_state_impl {
	($ty:ident) => {
		netserv_server_sdk::bindings::state::export_state!($ty with_types_in
		netserv_server_sdk::bindings::state);
	};
	($ty:ident with_types_in $($path_to_types_root:tt)*) => {
		$($path_to_types_root)*::
		exports::netserv::state::carrier::__export_netserv_state_carrier_1_0_0_cabi!($ty
		with_types_in $($path_to_types_root)*:: exports::netserv::state::carrier); const
		_ : () = { #[cfg(target_arch = "wasm32")] #[unsafe (link_section =
		"component-type:wit-bindgen:0.57.1:netserv:sdk-state:state:imports and exports")]
		#[doc(hidden)] #[allow(clippy::octal_escapes)] pub static
		__WIT_BINDGEN_COMPONENT_TYPE : [u8; 258] = *
		b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07\x86\x01\x01A\x02\x01\
A\x02\x01B\x07\x01p}\x01j\x01\0\x01s\x01@\0\0\x01\x04\0\x0cexport-state\x01\x02\x01\
j\0\x01s\x01@\x01\x05state\0\0\x03\x04\0\x0cimport-state\x01\x04\x04\0\x1bnetser\
v:state/carrier@1.0.0\x05\0\x04\0\x17netserv:sdk-state/state\x04\0\x0b\x0b\x01\0\
\x05state\x03\0\0\0G\x09producers\x01\x0cprocessed-by\x02\x0dwit-component\x070.\
247.0\x10wit-bindgen-rust\x060.57.1";
		};
	};
}
#[doc(inline)]
pub use __export_state_impl as export_state;
#[cfg(target_arch = "wasm32")]
#[unsafe(
	link_section = "component-type:wit-bindgen:0.57.1:netserv:sdk-state:state-with-all-of-its-exports-removed:encoded world"
)]
#[doc(hidden)]
#[allow(clippy::octal_escapes)]
pub static __WIT_BINDGEN_COMPONENT_TYPE: [u8; 221] = *b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07B\x01A\x02\x01A\0\x04\
\07netserv:sdk-state/state-with-all-of-its-exports-removed\x04\0\x0b+\x01\0%stat\
e-with-all-of-its-exports-removed\x03\0\0\0G\x09producers\x01\x0cprocessed-by\x02\
\x0dwit-component\x070.247.0\x10wit-bindgen-rust\x060.57.1";
#[inline(never)]
#[doc(hidden)]
pub fn __link_custom_section_describing_imports() {
	wit_bindgen::rt::maybe_link_cabi_realloc();
}
