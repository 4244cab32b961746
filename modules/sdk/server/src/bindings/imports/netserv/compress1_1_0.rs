// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Streams that are compressed while they are read.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod streams {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	pub type Compressor = super::super::super::netserv::compress1_0_0::codec::Compressor;
	pub type InputStream = super::super::super::wasi::io::streams::InputStream;
	#[allow(unused_unsafe, clippy::all)]
	/// Returns what `source` gives, compressed; it has the compressor from then on, and its memory, until it is dropped. It
	/// traps if something was made of the source that is still there, such as a pollable, or if the source is such a stream itself.
	///
	/// The stream ends when its source does, and fails when that does. What has come can be decompressed once the source has
	/// been silent for five milliseconds, or 50 after it came: events of a server reach their reader at once. A compressor that has
	/// finished makes an empty stream.
	///
	/// What it returns can be handed over (`netserv:http/hand-over`): the node compresses then by itself, while the instance is gone.
	#[allow(async_fn_in_trait)]
	pub fn coded(coder: Compressor, source: InputStream) -> InputStream {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:compress/streams@1.1.0")]
			unsafe extern "C" {
				#[link_name = "coded"]
				fn wit_import0(_: i32, _: i32) -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0(_: i32, _: i32) -> i32 {
				unreachable!()
			}
			let ret = wit_import0(
				(&coder).take_handle() as i32,
				(&source).take_handle() as i32,
			);
			super::super::super::wasi::io::streams::InputStream::from_handle(ret as u32)
		}
	}
}
