// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

#[allow(dead_code, clippy::all)]
pub mod exports {
	pub mod wasi {
		pub mod cli {
			#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
			pub mod run {
				#[used]
				#[doc(hidden)]
				static __FORCE_SECTION_REF: fn() = super::super::super::super::__link_custom_section_describing_imports;
				use super::super::super::super::_rt;
				#[doc(hidden)]
				#[allow(non_snake_case, unused_unsafe)]
				pub unsafe fn _export_run_cabi<T_: Guest>() -> i32 {
					unsafe {
						#[cfg(target_arch = "wasm32")] _rt::run_ctors_once();
						let result0 = { T_::run() };
						let result1 = match result0 {
							Ok(_) => 0i32,
							Err(_) => 1i32,
						};
						result1
					}
				}
				pub trait Guest {
					/// Run the program.
					#[allow(async_fn_in_trait)]
					fn run() -> Result<(), ()>;
				}
				#[doc(hidden)]
				#[macro_export]
				macro_rules! __export_wasi_cli_run_0_2_12_cabi {
					($ty:ident with_types_in $($path_to_types:tt)*) => {
						const _ : () = { #[unsafe (export_name =
						"wasi:cli/run@0.2.12#run")] unsafe extern "C" fn export_run() ->
						i32 { unsafe { $($path_to_types)*:: _export_run_cabi::<$ty > () }
						} };
					};
				}
				#[doc(hidden)]
				pub use __export_wasi_cli_run_0_2_12_cabi;
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
}
/// Generates `#[unsafe(no_mangle)]` functions to export the specified type as
/// the root implementation of all generated traits.
///
/// For more information see the documentation of `wit_bindgen::generate!`.
///
/// ```rust
/// # macro_rules! export_run{ ($($t:tt)*) => (); }
/// # trait Guest {}
/// struct MyType;
///
/// impl Guest for MyType {
///     // ...
/// }
///
/// export_run!(MyType);
/// ```
#[allow(unused_macros)]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_run_impl {
	($ty:ident) => {
		netserv_server_sdk::bindings::run::export_run!($ty with_types_in
		netserv_server_sdk::bindings::run);
	};
	($ty:ident with_types_in $($path_to_types_root:tt)*) => {
		$($path_to_types_root)*::
		exports::wasi::cli::run::__export_wasi_cli_run_0_2_12_cabi!($ty with_types_in
		$($path_to_types_root)*:: exports::wasi::cli::run); const _ : () = {
		#[cfg(target_arch = "wasm32")] #[unsafe (link_section =
		"component-type:wit-bindgen:0.57.1:netserv:sdk-run:run:imports and exports")]
		#[doc(hidden)] #[allow(clippy::octal_escapes)] pub static
		__WIT_BINDGEN_COMPONENT_TYPE : [u8; 195] = *
		b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07J\x01A\x02\x01A\x02\x01\
B\x03\x01j\0\0\x01@\0\0\0\x04\0\x03run\x01\x01\x04\0\x13wasi:cli/run@0.2.12\x05\0\
\x04\0\x13netserv:sdk-run/run\x04\0\x0b\x09\x01\0\x03run\x03\0\0\0G\x09producers\
\x01\x0cprocessed-by\x02\x0dwit-component\x070.247.0\x10wit-bindgen-rust\x060.57\
.1";
		};
	};
}
#[doc(inline)]
pub use __export_run_impl as export_run;
#[cfg(target_arch = "wasm32")]
#[unsafe(
	link_section = "component-type:wit-bindgen:0.57.1:netserv:sdk-run:run-with-all-of-its-exports-removed:encoded world"
)]
#[doc(hidden)]
#[allow(clippy::octal_escapes)]
pub static __WIT_BINDGEN_COMPONENT_TYPE: [u8; 215] = *b"\
\0asm\x0d\0\x01\0\0\x19\x16wit-component-encoding\x04\0\x07>\x01A\x02\x01A\0\x04\
\03netserv:sdk-run/run-with-all-of-its-exports-removed\x04\0\x0b)\x01\0#run-with\
-all-of-its-exports-removed\x03\0\0\0G\x09producers\x01\x0cprocessed-by\x02\x0dw\
it-component\x070.247.0\x10wit-bindgen-rust\x060.57.1";
#[inline(never)]
#[doc(hidden)]
pub fn __link_custom_section_describing_imports() {
	wit_bindgen::rt::maybe_link_cabi_realloc();
}
