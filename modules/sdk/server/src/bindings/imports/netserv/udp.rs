// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

/// Datagrams in batches, for programs (`wasi:cli/run`): many with each call, where `wasi:sockets/udp` has at most 16 and takes 64 KiB of
/// memory for each. What may be bound and sent to is the same.
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod sockets {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	pub type IpSocketAddress = super::super::super::wasi::sockets::network::IpSocketAddress;
	/// Why nothing was done.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum Error {
		/// The module may not take the port, or not send there; only programs have datagrams.
		NotPermitted,
		/// The port is taken.
		Taken,
		/// The address is none of the module's own, or of another IP version than the socket; lengths and bytes do not agree.
		Invalid,
		/// A datagram of more than 65,507 bytes.
		TooLarge,
		/// The module has 64 sockets, or the system has no more.
		Quota,
	}
	impl Error {
		pub fn name(&self) -> &'static str {
			match self {
				Error::NotPermitted => "not-permitted",
				Error::Taken => "taken",
				Error::Invalid => "invalid",
				Error::TooLarge => "too-large",
				Error::Quota => "quota",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				Error::NotPermitted => {
					"The module may not take the port, or not send there; only programs have datagrams."
				}
				Error::Taken => "The port is taken.",
				Error::Invalid => {
					"The address is none of the module's own, or of another IP version than the socket; lengths and bytes do not agree."
				}
				Error::TooLarge => "A datagram of more than 65,507 bytes.",
				Error::Quota => "The module has 64 sockets, or the system has no more.",
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
				0 => Error::NotPermitted,
				1 => Error::Taken,
				2 => Error::Invalid,
				3 => Error::TooLarge,
				4 => Error::Quota,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// A datagram among others.
	#[repr(C)]
	#[derive(Clone, Copy)]
	pub struct Datagram {
		/// Whom it came from, or goes to.
		pub remote: IpSocketAddress,
		/// Its bytes: so many of those of the batch, behind those of the datagrams before it.
		pub length: u32,
	}
	impl ::core::fmt::Debug for Datagram {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Datagram")
				.field("remote", &self.remote)
				.field("length", &self.length)
				.finish()
		}
	}
	/// Datagrams that came, the oldest first.
	#[derive(Clone)]
	pub struct Batch {
		pub datagrams: _rt::Vec<Datagram>,
		/// The bytes of all.
		pub bytes: _rt::Vec<u8>,
	}
	impl ::core::fmt::Debug for Batch {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Batch")
				.field("datagrams", &self.datagrams)
				.field("bytes", &self.bytes)
				.finish()
		}
	}
	/// A socket. It is closed when this is dropped.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Socket {
		handle: _rt::Resource<Socket>,
	}
	impl Socket {
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
	unsafe impl _rt::WasmResource for Socket {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "netserv:udp/sockets@1.0.0")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]socket"]
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
	impl Socket {
		#[allow(unused_unsafe, clippy::all)]
		/// Takes a port, one of the system's choice for 0. A program that replaces another version waits until that one has left.
		#[allow(async_fn_in_trait)]
		pub fn open(local: IpSocketAddress) -> Result<Socket, Error> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
				use super::super::super::wasi::sockets::network::IpSocketAddress as V4;
				let (
					result5_0,
					result5_1,
					result5_2,
					result5_3,
					result5_4,
					result5_5,
					result5_6,
					result5_7,
					result5_8,
					result5_9,
					result5_10,
					result5_11,
				) = match local {
					V4::Ipv4(e) => {
						let super::super::super::wasi::sockets::network::Ipv4SocketAddress {
							port: port0,
							address: address0,
						} = e;
						let (t1_0, t1_1, t1_2, t1_3) = address0;
						(
							0i32,
							_rt::as_i32(port0),
							_rt::as_i32(t1_0),
							_rt::as_i32(t1_1),
							_rt::as_i32(t1_2),
							_rt::as_i32(t1_3),
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
						)
					}
					V4::Ipv6(e) => {
						let super::super::super::wasi::sockets::network::Ipv6SocketAddress {
							port: port2,
							flow_info: flow_info2,
							address: address2,
							scope_id: scope_id2,
						} = e;
						let (t3_0, t3_1, t3_2, t3_3, t3_4, t3_5, t3_6, t3_7) = address2;
						(
							1i32,
							_rt::as_i32(port2),
							_rt::as_i32(flow_info2),
							_rt::as_i32(t3_0),
							_rt::as_i32(t3_1),
							_rt::as_i32(t3_2),
							_rt::as_i32(t3_3),
							_rt::as_i32(t3_4),
							_rt::as_i32(t3_5),
							_rt::as_i32(t3_6),
							_rt::as_i32(t3_7),
							_rt::as_i32(scope_id2),
						)
					}
				};
				let ptr6 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:udp/sockets@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[static]socket.open"]
					fn wit_import7(
						_: i32,
						_: i32,
						_: i32,
						_: i32,
						_: i32,
						_: i32,
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
				unsafe extern "C" fn wit_import7(
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
					_: i32,
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
				wit_import7(
					result5_0,
					result5_1,
					result5_2,
					result5_3,
					result5_4,
					result5_5,
					result5_6,
					result5_7,
					result5_8,
					result5_9,
					result5_10,
					result5_11,
					ptr6,
				);
				let l8 = i32::from(*ptr6.add(0).cast::<u8>());
				let result11 = match l8 {
					0 => {
						let e = {
							let l9 = *ptr6.add(4).cast::<i32>();
							Socket::from_handle(l9 as u32)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l10 = i32::from(*ptr6.add(4).cast::<u8>());
							Error::_lift(l10 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result11
			}
		}
	}
	impl Socket {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns the address that it has.
		#[allow(async_fn_in_trait)]
		pub fn local(&self) -> IpSocketAddress {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 32]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 32]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:udp/sockets@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]socket.local"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				use super::super::super::wasi::sockets::network::IpSocketAddress as V19;
				let v19 = match l2 {
					0 => {
						let e19 = {
							let l3 = i32::from(*ptr0.add(4).cast::<u16>());
							let l4 = i32::from(*ptr0.add(6).cast::<u8>());
							let l5 = i32::from(*ptr0.add(7).cast::<u8>());
							let l6 = i32::from(*ptr0.add(8).cast::<u8>());
							let l7 = i32::from(*ptr0.add(9).cast::<u8>());
							super::super::super::wasi::sockets::network::Ipv4SocketAddress {
								port: l3 as u16,
								address: (l4 as u8, l5 as u8, l6 as u8, l7 as u8),
							}
						};
						V19::Ipv4(e19)
					}
					n => {
						debug_assert_eq!(n, 1, "invalid enum discriminant");
						let e19 = {
							let l8 = i32::from(*ptr0.add(4).cast::<u16>());
							let l9 = *ptr0.add(8).cast::<i32>();
							let l10 = i32::from(*ptr0.add(12).cast::<u16>());
							let l11 = i32::from(*ptr0.add(14).cast::<u16>());
							let l12 = i32::from(*ptr0.add(16).cast::<u16>());
							let l13 = i32::from(*ptr0.add(18).cast::<u16>());
							let l14 = i32::from(*ptr0.add(20).cast::<u16>());
							let l15 = i32::from(*ptr0.add(22).cast::<u16>());
							let l16 = i32::from(*ptr0.add(24).cast::<u16>());
							let l17 = i32::from(*ptr0.add(26).cast::<u16>());
							let l18 = *ptr0.add(28).cast::<i32>();
							super::super::super::wasi::sockets::network::Ipv6SocketAddress {
								port: l8 as u16,
								flow_info: l9 as u32,
								address: (
									l10 as u16,
									l11 as u16,
									l12 as u16,
									l13 as u16,
									l14 as u16,
									l15 as u16,
									l16 as u16,
									l17 as u16,
								),
								scope_id: l18 as u32,
							}
						};
						V19::Ipv6(e19)
					}
				};
				let result20 = v19;
				result20
			}
		}
	}
	impl Socket {
		#[allow(unused_unsafe, clippy::all)]
		/// Takes what has come, at most `most` datagrams and 32 in any case, of up to 64 KiB each; none if none has.
		#[allow(async_fn_in_trait)]
		pub fn receive(&self, most: u32) -> Result<Batch, Error> {
			unsafe {
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 5 * ::core::mem::size_of::<*const u8>()],
				);
				let mut ret_area = RetArea(
					[::core::mem::MaybeUninit::uninit(); 5
						* ::core::mem::size_of::<*const u8>()],
				);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:udp/sockets@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]socket.receive"]
					fn wit_import1(_: i32, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i32(&most), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result29 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0
								.add(::core::mem::size_of::<*const u8>())
								.cast::<*mut u8>();
							let l4 = *ptr0
								.add(2 * ::core::mem::size_of::<*const u8>())
								.cast::<usize>();
							let base24 = l3;
							let len24 = l4;
							let mut result24 = _rt::Vec::with_capacity(len24);
							for i in 0..len24 {
								let base = base24.add(i * 36);
								let e24 = {
									let l5 = i32::from(*base.add(0).cast::<u8>());
									use super::super::super::wasi::sockets::network::IpSocketAddress as V22;
									let v22 = match l5 {
										0 => {
											let e22 = {
												let l6 = i32::from(*base.add(4).cast::<u16>());
												let l7 = i32::from(*base.add(6).cast::<u8>());
												let l8 = i32::from(*base.add(7).cast::<u8>());
												let l9 = i32::from(*base.add(8).cast::<u8>());
												let l10 = i32::from(*base.add(9).cast::<u8>());
												super::super::super::wasi::sockets::network::Ipv4SocketAddress {
													port: l6 as u16,
													address: (l7 as u8, l8 as u8, l9 as u8, l10 as u8),
												}
											};
											V22::Ipv4(e22)
										}
										n => {
											debug_assert_eq!(n, 1, "invalid enum discriminant");
											let e22 = {
												let l11 = i32::from(*base.add(4).cast::<u16>());
												let l12 = *base.add(8).cast::<i32>();
												let l13 = i32::from(*base.add(12).cast::<u16>());
												let l14 = i32::from(*base.add(14).cast::<u16>());
												let l15 = i32::from(*base.add(16).cast::<u16>());
												let l16 = i32::from(*base.add(18).cast::<u16>());
												let l17 = i32::from(*base.add(20).cast::<u16>());
												let l18 = i32::from(*base.add(22).cast::<u16>());
												let l19 = i32::from(*base.add(24).cast::<u16>());
												let l20 = i32::from(*base.add(26).cast::<u16>());
												let l21 = *base.add(28).cast::<i32>();
												super::super::super::wasi::sockets::network::Ipv6SocketAddress {
													port: l11 as u16,
													flow_info: l12 as u32,
													address: (
														l13 as u16,
														l14 as u16,
														l15 as u16,
														l16 as u16,
														l17 as u16,
														l18 as u16,
														l19 as u16,
														l20 as u16,
													),
													scope_id: l21 as u32,
												}
											};
											V22::Ipv6(e22)
										}
									};
									let l23 = *base.add(32).cast::<i32>();
									Datagram {
										remote: v22,
										length: l23 as u32,
									}
								};
								result24.push(e24);
							}
							_rt::cabi_dealloc(base24, len24 * 36, 4);
							let l25 = *ptr0
								.add(3 * ::core::mem::size_of::<*const u8>())
								.cast::<*mut u8>();
							let l26 = *ptr0
								.add(4 * ::core::mem::size_of::<*const u8>())
								.cast::<usize>();
							let len27 = l26;
							Batch {
								datagrams: result24,
								bytes: <_ as From<
									_rt::Vec<_>,
								>>::from(_rt::Vec::from_raw_parts(l25.cast(), len27, len27)),
							}
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l28 = i32::from(
								*ptr0.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
							);
							Error::_lift(l28 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result29
			}
		}
	}
	impl Socket {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns what is ready when something may have come.
		#[allow(async_fn_in_trait)]
		pub fn subscribe(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:udp/sockets@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]socket.subscribe"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0((self).handle() as i32);
				super::super::super::wasi::io::poll::Pollable::from_handle(ret as u32)
			}
		}
	}
	impl Socket {
		#[allow(unused_unsafe, clippy::all)]
		/// Sends datagrams, one after the other, 32 at most. Returns how many went: fewer if the kernel takes no more for the moment.
		/// One to where there is no way counts as sent. After an error none went.
		#[allow(async_fn_in_trait)]
		pub fn send(&self, datagrams: &[Datagram], bytes: &[u8]) -> Result<u32, Error> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
				let vec6 = datagrams;
				let len6 = vec6.len();
				let layout6 = _rt::alloc::Layout::from_size_align(vec6.len() * 36, 4)
					.unwrap();
				let (result6, _cleanup6) = wit_bindgen::rt::Cleanup::new(layout6);
				for (i, e) in vec6.into_iter().enumerate() {
					let base = result6.add(i * 36);
					{
						let Datagram { remote: remote0, length: length0 } = e;
						use super::super::super::wasi::sockets::network::IpSocketAddress as V5;
						match remote0 {
							V5::Ipv4(e) => {
								*base.add(0).cast::<u8>() = (0i32) as u8;
								let super::super::super::wasi::sockets::network::Ipv4SocketAddress {
									port: port1,
									address: address1,
								} = e;
								*base.add(4).cast::<u16>() = (_rt::as_i32(port1)) as u16;
								let (t2_0, t2_1, t2_2, t2_3) = address1;
								*base.add(6).cast::<u8>() = (_rt::as_i32(t2_0)) as u8;
								*base.add(7).cast::<u8>() = (_rt::as_i32(t2_1)) as u8;
								*base.add(8).cast::<u8>() = (_rt::as_i32(t2_2)) as u8;
								*base.add(9).cast::<u8>() = (_rt::as_i32(t2_3)) as u8;
							}
							V5::Ipv6(e) => {
								*base.add(0).cast::<u8>() = (1i32) as u8;
								let super::super::super::wasi::sockets::network::Ipv6SocketAddress {
									port: port3,
									flow_info: flow_info3,
									address: address3,
									scope_id: scope_id3,
								} = e;
								*base.add(4).cast::<u16>() = (_rt::as_i32(port3)) as u16;
								*base.add(8).cast::<i32>() = _rt::as_i32(flow_info3);
								let (t4_0, t4_1, t4_2, t4_3, t4_4, t4_5, t4_6, t4_7) = address3;
								*base.add(12).cast::<u16>() = (_rt::as_i32(t4_0)) as u16;
								*base.add(14).cast::<u16>() = (_rt::as_i32(t4_1)) as u16;
								*base.add(16).cast::<u16>() = (_rt::as_i32(t4_2)) as u16;
								*base.add(18).cast::<u16>() = (_rt::as_i32(t4_3)) as u16;
								*base.add(20).cast::<u16>() = (_rt::as_i32(t4_4)) as u16;
								*base.add(22).cast::<u16>() = (_rt::as_i32(t4_5)) as u16;
								*base.add(24).cast::<u16>() = (_rt::as_i32(t4_6)) as u16;
								*base.add(26).cast::<u16>() = (_rt::as_i32(t4_7)) as u16;
								*base.add(28).cast::<i32>() = _rt::as_i32(scope_id3);
							}
						}
						*base.add(32).cast::<i32>() = _rt::as_i32(length0);
					}
				}
				let vec7 = bytes;
				let ptr7 = vec7.as_ptr().cast::<u8>();
				let len7 = vec7.len();
				let ptr8 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:udp/sockets@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]socket.send"]
					fn wit_import9(
						_: i32,
						_: *mut u8,
						_: usize,
						_: *mut u8,
						_: usize,
						_: *mut u8,
					);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import9(
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import9(
					(self).handle() as i32,
					result6,
					len6,
					ptr7.cast_mut(),
					len7,
					ptr8,
				);
				let l10 = i32::from(*ptr8.add(0).cast::<u8>());
				let result13 = match l10 {
					0 => {
						let e = {
							let l11 = *ptr8.add(4).cast::<i32>();
							l11 as u32
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l12 = i32::from(*ptr8.add(4).cast::<u8>());
							Error::_lift(l12 as u8)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result13
			}
		}
	}
	impl Socket {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns what is ready when the kernel may take more.
		#[allow(async_fn_in_trait)]
		pub fn subscribe_to_send(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "netserv:udp/sockets@1.0.0")]
				unsafe extern "C" {
					#[link_name = "[method]socket.subscribe-to-send"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0((self).handle() as i32);
				super::super::super::wasi::io::poll::Pollable::from_handle(ret as u32)
			}
		}
	}
}
