// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod environment {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	#[allow(unused_unsafe, clippy::all)]
	/// Get the POSIX-style environment variables.
	///
	/// Each environment variable is provided as a pair of string variable names
	/// and string value.
	///
	/// Morally, these are a value import, but until value imports are available
	/// in the component model, this import function should return the same
	/// values each time it is called.
	#[allow(async_fn_in_trait)]
	pub fn get_environment() -> _rt::Vec<(_rt::String, _rt::String)> {
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
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/environment@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-environment"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = *ptr0.add(0).cast::<*mut u8>();
			let l3 = *ptr0.add(::core::mem::size_of::<*const u8>()).cast::<usize>();
			let base10 = l2;
			let len10 = l3;
			let mut result10 = _rt::Vec::with_capacity(len10);
			for i in 0..len10 {
				let base = base10.add(i * (4 * ::core::mem::size_of::<*const u8>()));
				let e10 = {
					let l4 = *base.add(0).cast::<*mut u8>();
					let l5 = *base
						.add(::core::mem::size_of::<*const u8>())
						.cast::<usize>();
					let len6 = l5;
					let bytes6 = _rt::Vec::from_raw_parts(l4.cast(), len6, len6);
					let l7 = *base
						.add(2 * ::core::mem::size_of::<*const u8>())
						.cast::<*mut u8>();
					let l8 = *base
						.add(3 * ::core::mem::size_of::<*const u8>())
						.cast::<usize>();
					let len9 = l8;
					let bytes9 = _rt::Vec::from_raw_parts(l7.cast(), len9, len9);
					(_rt::string_lift(bytes6), _rt::string_lift(bytes9))
				};
				result10.push(e10);
			}
			_rt::cabi_dealloc(
				base10,
				len10 * (4 * ::core::mem::size_of::<*const u8>()),
				::core::mem::size_of::<*const u8>(),
			);
			let result11 = result10;
			result11
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Get the POSIX-style arguments to the program.
	#[allow(async_fn_in_trait)]
	pub fn get_arguments() -> _rt::Vec<_rt::String> {
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
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/environment@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-arguments"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = *ptr0.add(0).cast::<*mut u8>();
			let l3 = *ptr0.add(::core::mem::size_of::<*const u8>()).cast::<usize>();
			let base7 = l2;
			let len7 = l3;
			let mut result7 = _rt::Vec::with_capacity(len7);
			for i in 0..len7 {
				let base = base7.add(i * (2 * ::core::mem::size_of::<*const u8>()));
				let e7 = {
					let l4 = *base.add(0).cast::<*mut u8>();
					let l5 = *base
						.add(::core::mem::size_of::<*const u8>())
						.cast::<usize>();
					let len6 = l5;
					let bytes6 = _rt::Vec::from_raw_parts(l4.cast(), len6, len6);
					_rt::string_lift(bytes6)
				};
				result7.push(e7);
			}
			_rt::cabi_dealloc(
				base7,
				len7 * (2 * ::core::mem::size_of::<*const u8>()),
				::core::mem::size_of::<*const u8>(),
			);
			let result8 = result7;
			result8
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Return a path that programs should use as their initial current working
	/// directory, interpreting `.` as shorthand for this.
	#[allow(async_fn_in_trait)]
	pub fn initial_cwd() -> Option<_rt::String> {
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
			#[link(wasm_import_module = "wasi:cli/environment@0.2.12")]
			unsafe extern "C" {
				#[link_name = "initial-cwd"]
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
						let bytes5 = _rt::Vec::from_raw_parts(l3.cast(), len5, len5);
						_rt::string_lift(bytes5)
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result6
		}
	}
}
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod exit {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	#[allow(unused_unsafe, clippy::all)]
	/// Exit the current instance and any linked instances.
	#[allow(async_fn_in_trait)]
	pub fn exit(status: Result<(), ()>) -> () {
		unsafe {
			let result0 = match status {
				Ok(_) => 0i32,
				Err(_) => 1i32,
			};
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/exit@0.2.12")]
			unsafe extern "C" {
				#[link_name = "exit"]
				fn wit_import1(_: i32);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i32) {
				unreachable!()
			}
			wit_import1(result0);
		}
	}
	#[allow(unused_unsafe, clippy::all)]
	/// Exit the current instance and any linked instances, reporting the
	/// specified status code to the host.
	///
	/// The meaning of the code depends on the context, with 0 usually meaning
	/// "success", and other values indicating various types of failure.
	///
	/// This function does not return; the effect is analogous to a trap, but
	/// without the connotation that something bad has happened.
	#[allow(async_fn_in_trait)]
	pub fn exit_with_code(status_code: u8) -> () {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/exit@0.2.12")]
			unsafe extern "C" {
				#[link_name = "exit-with-code"]
				fn wit_import0(_: i32);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0(_: i32) {
				unreachable!()
			}
			wit_import0(_rt::as_i32(&status_code));
		}
	}
}
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod stdin {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	pub type InputStream = super::super::super::wasi::io::streams::InputStream;
	#[allow(unused_unsafe, clippy::all)]
	#[allow(async_fn_in_trait)]
	pub fn get_stdin() -> InputStream {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/stdin@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-stdin"]
				fn wit_import0() -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i32 {
				unreachable!()
			}
			let ret = wit_import0();
			super::super::super::wasi::io::streams::InputStream::from_handle(ret as u32)
		}
	}
}
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod stdout {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	pub type OutputStream = super::super::super::wasi::io::streams::OutputStream;
	#[allow(unused_unsafe, clippy::all)]
	#[allow(async_fn_in_trait)]
	pub fn get_stdout() -> OutputStream {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/stdout@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-stdout"]
				fn wit_import0() -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i32 {
				unreachable!()
			}
			let ret = wit_import0();
			super::super::super::wasi::io::streams::OutputStream::from_handle(ret as u32)
		}
	}
}
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod stderr {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	pub type OutputStream = super::super::super::wasi::io::streams::OutputStream;
	#[allow(unused_unsafe, clippy::all)]
	#[allow(async_fn_in_trait)]
	pub fn get_stderr() -> OutputStream {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/stderr@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-stderr"]
				fn wit_import0() -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i32 {
				unreachable!()
			}
			let ret = wit_import0();
			super::super::super::wasi::io::streams::OutputStream::from_handle(ret as u32)
		}
	}
}
/// Terminal input.
///
/// In the future, this may include functions for disabling echoing,
/// disabling input buffering so that keyboard events are sent through
/// immediately, querying supported features, and so on.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod terminal_input {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// The input side of a terminal.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct TerminalInput {
		handle: _rt::Resource<TerminalInput>,
	}
	impl TerminalInput {
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
	unsafe impl _rt::WasmResource for TerminalInput {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/terminal-input@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]terminal-input"]
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
}
/// Terminal output.
///
/// In the future, this may include functions for querying the terminal
/// size, being notified of terminal size changes, querying supported
/// features, and so on.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod terminal_output {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// The output side of a terminal.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct TerminalOutput {
		handle: _rt::Resource<TerminalOutput>,
	}
	impl TerminalOutput {
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
	unsafe impl _rt::WasmResource for TerminalOutput {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/terminal-output@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]terminal-output"]
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
}
/// An interface providing an optional `terminal-input` for stdin as a
/// link-time authority.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod terminal_stdin {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type TerminalInput = super::super::super::wasi::cli::terminal_input::TerminalInput;
	#[allow(unused_unsafe, clippy::all)]
	/// If stdin is connected to a terminal, return a `terminal-input` handle
	/// allowing further interaction with it.
	#[allow(async_fn_in_trait)]
	pub fn get_terminal_stdin() -> Option<TerminalInput> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/terminal-stdin@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-terminal-stdin"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result4 = match l2 {
				0 => None,
				1 => {
					let e = {
						let l3 = *ptr0.add(4).cast::<i32>();
						super::super::super::wasi::cli::terminal_input::TerminalInput::from_handle(
							l3 as u32,
						)
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result4
		}
	}
}
/// An interface providing an optional `terminal-output` for stdout as a
/// link-time authority.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod terminal_stdout {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type TerminalOutput = super::super::super::wasi::cli::terminal_output::TerminalOutput;
	#[allow(unused_unsafe, clippy::all)]
	/// If stdout is connected to a terminal, return a `terminal-output` handle
	/// allowing further interaction with it.
	#[allow(async_fn_in_trait)]
	pub fn get_terminal_stdout() -> Option<TerminalOutput> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/terminal-stdout@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-terminal-stdout"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result4 = match l2 {
				0 => None,
				1 => {
					let e = {
						let l3 = *ptr0.add(4).cast::<i32>();
						super::super::super::wasi::cli::terminal_output::TerminalOutput::from_handle(
							l3 as u32,
						)
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result4
		}
	}
}
/// An interface providing an optional `terminal-output` for stderr as a
/// link-time authority.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod terminal_stderr {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type TerminalOutput = super::super::super::wasi::cli::terminal_output::TerminalOutput;
	#[allow(unused_unsafe, clippy::all)]
	/// If stderr is connected to a terminal, return a `terminal-output` handle
	/// allowing further interaction with it.
	#[allow(async_fn_in_trait)]
	pub fn get_terminal_stderr() -> Option<TerminalOutput> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:cli/terminal-stderr@0.2.12")]
			unsafe extern "C" {
				#[link_name = "get-terminal-stderr"]
				fn wit_import1(_: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: *mut u8) {
				unreachable!()
			}
			wit_import1(ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result4 = match l2 {
				0 => None,
				1 => {
					let e = {
						let l3 = *ptr0.add(4).cast::<i32>();
						super::super::super::wasi::cli::terminal_output::TerminalOutput::from_handle(
							l3 as u32,
						)
					};
					Some(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result4
		}
	}
}
