// SPDX-License-Identifier: Apache-2.0
// Made from wit/ by `./dev bindings`.

#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod network {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	/// An opaque resource that represents access to (a subset of) the network.
	/// This enables context-based security for networking.
	/// There is no need for this to map 1:1 to a physical network interface.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct Network {
		handle: _rt::Resource<Network>,
	}
	impl Network {
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
	unsafe impl _rt::WasmResource for Network {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/network@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]network"]
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
	/// Error codes.
	///
	/// In theory, every API can return any error code.
	/// In practice, API's typically only return the errors documented per API
	/// combined with a couple of errors that are always possible:
	/// - `unknown`
	/// - `access-denied`
	/// - `not-supported`
	/// - `out-of-memory`
	/// - `concurrency-conflict`
	///
	/// See each individual API for what the POSIX equivalents are. They sometimes differ per API.
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum ErrorCode {
		/// Unknown error
		Unknown,
		/// Access denied.
		///
		/// POSIX equivalent: EACCES, EPERM
		AccessDenied,
		/// The operation is not supported.
		///
		/// POSIX equivalent: EOPNOTSUPP
		NotSupported,
		/// One of the arguments is invalid.
		///
		/// POSIX equivalent: EINVAL
		InvalidArgument,
		/// Not enough memory to complete the operation.
		///
		/// POSIX equivalent: ENOMEM, ENOBUFS, EAI_MEMORY
		OutOfMemory,
		/// The operation timed out before it could finish completely.
		Timeout,
		/// This operation is incompatible with another asynchronous operation that is already in progress.
		///
		/// POSIX equivalent: EALREADY
		ConcurrencyConflict,
		/// Trying to finish an asynchronous operation that:
		/// - has not been started yet, or:
		/// - was already finished by a previous `finish-*` call.
		///
		/// Note: this is scheduled to be removed when `future`s are natively supported.
		NotInProgress,
		/// The operation has been aborted because it could not be completed immediately.
		///
		/// Note: this is scheduled to be removed when `future`s are natively supported.
		WouldBlock,
		/// The operation is not valid in the socket's current state.
		InvalidState,
		/// A new socket resource could not be created because of a system limit.
		NewSocketLimit,
		/// A bind operation failed because the provided address is not an address that the `network` can bind to.
		AddressNotBindable,
		/// A bind operation failed because the provided address is already in use or because there are no ephemeral ports available.
		AddressInUse,
		/// The remote address is not reachable
		RemoteUnreachable,
		/// The TCP connection was forcefully rejected
		ConnectionRefused,
		/// The TCP connection was reset.
		ConnectionReset,
		/// A TCP connection was aborted.
		ConnectionAborted,
		/// The size of a datagram sent to a UDP socket exceeded the maximum
		/// supported size.
		DatagramTooLarge,
		/// Name does not exist or has no suitable associated IP addresses.
		NameUnresolvable,
		/// A temporary failure in name resolution occurred.
		TemporaryResolverFailure,
		/// A permanent failure in name resolution occurred.
		PermanentResolverFailure,
	}
	impl ErrorCode {
		pub fn name(&self) -> &'static str {
			match self {
				ErrorCode::Unknown => "unknown",
				ErrorCode::AccessDenied => "access-denied",
				ErrorCode::NotSupported => "not-supported",
				ErrorCode::InvalidArgument => "invalid-argument",
				ErrorCode::OutOfMemory => "out-of-memory",
				ErrorCode::Timeout => "timeout",
				ErrorCode::ConcurrencyConflict => "concurrency-conflict",
				ErrorCode::NotInProgress => "not-in-progress",
				ErrorCode::WouldBlock => "would-block",
				ErrorCode::InvalidState => "invalid-state",
				ErrorCode::NewSocketLimit => "new-socket-limit",
				ErrorCode::AddressNotBindable => "address-not-bindable",
				ErrorCode::AddressInUse => "address-in-use",
				ErrorCode::RemoteUnreachable => "remote-unreachable",
				ErrorCode::ConnectionRefused => "connection-refused",
				ErrorCode::ConnectionReset => "connection-reset",
				ErrorCode::ConnectionAborted => "connection-aborted",
				ErrorCode::DatagramTooLarge => "datagram-too-large",
				ErrorCode::NameUnresolvable => "name-unresolvable",
				ErrorCode::TemporaryResolverFailure => "temporary-resolver-failure",
				ErrorCode::PermanentResolverFailure => "permanent-resolver-failure",
			}
		}
		pub fn message(&self) -> &'static str {
			match self {
				ErrorCode::Unknown => "Unknown error",
				ErrorCode::AccessDenied => {
					"Access denied.

			  POSIX equivalent: EACCES, EPERM"
				}
				ErrorCode::NotSupported => {
					"The operation is not supported.

			  POSIX equivalent: EOPNOTSUPP"
				}
				ErrorCode::InvalidArgument => {
					"One of the arguments is invalid.

			  POSIX equivalent: EINVAL"
				}
				ErrorCode::OutOfMemory => {
					"Not enough memory to complete the operation.

			  POSIX equivalent: ENOMEM, ENOBUFS, EAI_MEMORY"
				}
				ErrorCode::Timeout => {
					"The operation timed out before it could finish completely."
				}
				ErrorCode::ConcurrencyConflict => {
					"This operation is incompatible with another asynchronous operation that is already in progress.

			  POSIX equivalent: EALREADY"
				}
				ErrorCode::NotInProgress => {
					"Trying to finish an asynchronous operation that:
			  - has not been started yet, or:
			  - was already finished by a previous `finish-*` call.

			  Note: this is scheduled to be removed when `future`s are natively supported."
				}
				ErrorCode::WouldBlock => {
					"The operation has been aborted because it could not be completed immediately.

			  Note: this is scheduled to be removed when `future`s are natively supported."
				}
				ErrorCode::InvalidState => {
					"The operation is not valid in the socket's current state."
				}
				ErrorCode::NewSocketLimit => {
					"A new socket resource could not be created because of a system limit."
				}
				ErrorCode::AddressNotBindable => {
					"A bind operation failed because the provided address is not an address that the `network` can bind to."
				}
				ErrorCode::AddressInUse => {
					"A bind operation failed because the provided address is already in use or because there are no ephemeral ports available."
				}
				ErrorCode::RemoteUnreachable => "The remote address is not reachable",
				ErrorCode::ConnectionRefused => {
					"The TCP connection was forcefully rejected"
				}
				ErrorCode::ConnectionReset => "The TCP connection was reset.",
				ErrorCode::ConnectionAborted => "A TCP connection was aborted.",
				ErrorCode::DatagramTooLarge => {
					"The size of a datagram sent to a UDP socket exceeded the maximum
			  supported size."
				}
				ErrorCode::NameUnresolvable => {
					"Name does not exist or has no suitable associated IP addresses."
				}
				ErrorCode::TemporaryResolverFailure => {
					"A temporary failure in name resolution occurred."
				}
				ErrorCode::PermanentResolverFailure => {
					"A permanent failure in name resolution occurred."
				}
			}
		}
	}
	impl ::core::fmt::Debug for ErrorCode {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("ErrorCode")
				.field("code", &(*self as i32))
				.field("name", &self.name())
				.field("message", &self.message())
				.finish()
		}
	}
	impl ::core::fmt::Display for ErrorCode {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			write!(f, "{} (error {})", self.name(), * self as i32)
		}
	}
	impl ::core::error::Error for ErrorCode {}
	impl ErrorCode {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> ErrorCode {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => ErrorCode::Unknown,
				1 => ErrorCode::AccessDenied,
				2 => ErrorCode::NotSupported,
				3 => ErrorCode::InvalidArgument,
				4 => ErrorCode::OutOfMemory,
				5 => ErrorCode::Timeout,
				6 => ErrorCode::ConcurrencyConflict,
				7 => ErrorCode::NotInProgress,
				8 => ErrorCode::WouldBlock,
				9 => ErrorCode::InvalidState,
				10 => ErrorCode::NewSocketLimit,
				11 => ErrorCode::AddressNotBindable,
				12 => ErrorCode::AddressInUse,
				13 => ErrorCode::RemoteUnreachable,
				14 => ErrorCode::ConnectionRefused,
				15 => ErrorCode::ConnectionReset,
				16 => ErrorCode::ConnectionAborted,
				17 => ErrorCode::DatagramTooLarge,
				18 => ErrorCode::NameUnresolvable,
				19 => ErrorCode::TemporaryResolverFailure,
				20 => ErrorCode::PermanentResolverFailure,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum IpAddressFamily {
		/// Similar to `AF_INET` in POSIX.
		Ipv4,
		/// Similar to `AF_INET6` in POSIX.
		Ipv6,
	}
	impl ::core::fmt::Debug for IpAddressFamily {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				IpAddressFamily::Ipv4 => f.debug_tuple("IpAddressFamily::Ipv4").finish(),
				IpAddressFamily::Ipv6 => f.debug_tuple("IpAddressFamily::Ipv6").finish(),
			}
		}
	}
	impl IpAddressFamily {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> IpAddressFamily {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => IpAddressFamily::Ipv4,
				1 => IpAddressFamily::Ipv6,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	pub type Ipv4Address = (u8, u8, u8, u8);
	pub type Ipv6Address = (u16, u16, u16, u16, u16, u16, u16, u16);
	#[derive(Clone, Copy)]
	pub enum IpAddress {
		Ipv4(Ipv4Address),
		Ipv6(Ipv6Address),
	}
	impl ::core::fmt::Debug for IpAddress {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				IpAddress::Ipv4(e) => f.debug_tuple("IpAddress::Ipv4").field(e).finish(),
				IpAddress::Ipv6(e) => f.debug_tuple("IpAddress::Ipv6").field(e).finish(),
			}
		}
	}
	#[repr(C)]
	#[derive(Clone, Copy)]
	pub struct Ipv4SocketAddress {
		/// sin_port
		pub port: u16,
		/// sin_addr
		pub address: Ipv4Address,
	}
	impl ::core::fmt::Debug for Ipv4SocketAddress {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Ipv4SocketAddress")
				.field("port", &self.port)
				.field("address", &self.address)
				.finish()
		}
	}
	#[repr(C)]
	#[derive(Clone, Copy)]
	pub struct Ipv6SocketAddress {
		/// sin6_port
		pub port: u16,
		/// sin6_flowinfo
		pub flow_info: u32,
		/// sin6_addr
		pub address: Ipv6Address,
		/// sin6_scope_id
		pub scope_id: u32,
	}
	impl ::core::fmt::Debug for Ipv6SocketAddress {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("Ipv6SocketAddress")
				.field("port", &self.port)
				.field("flow-info", &self.flow_info)
				.field("address", &self.address)
				.field("scope-id", &self.scope_id)
				.finish()
		}
	}
	#[derive(Clone, Copy)]
	pub enum IpSocketAddress {
		Ipv4(Ipv4SocketAddress),
		Ipv6(Ipv6SocketAddress),
	}
	impl ::core::fmt::Debug for IpSocketAddress {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				IpSocketAddress::Ipv4(e) => {
					f.debug_tuple("IpSocketAddress::Ipv4").field(e).finish()
				}
				IpSocketAddress::Ipv6(e) => {
					f.debug_tuple("IpSocketAddress::Ipv6").field(e).finish()
				}
			}
		}
	}
}
/// This interface provides a value-export of the default network handle..
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod instance_network {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	pub type Network = super::super::super::wasi::sockets::network::Network;
	#[allow(unused_unsafe, clippy::all)]
	/// Get a handle to the default network.
	#[allow(async_fn_in_trait)]
	pub fn instance_network() -> Network {
		unsafe {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/instance-network@0.2.12")]
			unsafe extern "C" {
				#[link_name = "instance-network"]
				fn wit_import0() -> i32;
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import0() -> i32 {
				unreachable!()
			}
			let ret = wit_import0();
			super::super::super::wasi::sockets::network::Network::from_handle(ret as u32)
		}
	}
}
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod udp {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	pub type Network = super::super::super::wasi::sockets::network::Network;
	pub type ErrorCode = super::super::super::wasi::sockets::network::ErrorCode;
	pub type IpSocketAddress = super::super::super::wasi::sockets::network::IpSocketAddress;
	pub type IpAddressFamily = super::super::super::wasi::sockets::network::IpAddressFamily;
	/// A received datagram.
	#[derive(Clone)]
	pub struct IncomingDatagram {
		/// The payload.
		///
		/// Theoretical max size: ~64 KiB. In practice, typically less than 1500 bytes.
		pub data: _rt::Vec<u8>,
		/// The source address.
		///
		/// This field is guaranteed to match the remote address the stream was initialized with, if any.
		///
		/// Equivalent to the `src_addr` out parameter of `recvfrom`.
		pub remote_address: IpSocketAddress,
	}
	impl ::core::fmt::Debug for IncomingDatagram {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("IncomingDatagram")
				.field("data", &self.data)
				.field("remote-address", &self.remote_address)
				.finish()
		}
	}
	/// A datagram to be sent out.
	#[derive(Clone)]
	pub struct OutgoingDatagram {
		/// The payload.
		pub data: _rt::Vec<u8>,
		/// The destination address.
		///
		/// The requirements on this field depend on how the stream was initialized:
		/// - with a remote address: this field must be None or match the stream's remote address exactly.
		/// - without a remote address: this field is required.
		///
		/// If this value is None, the send operation is equivalent to `send` in POSIX. Otherwise it is equivalent to `sendto`.
		pub remote_address: Option<IpSocketAddress>,
	}
	impl ::core::fmt::Debug for OutgoingDatagram {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			f.debug_struct("OutgoingDatagram")
				.field("data", &self.data)
				.field("remote-address", &self.remote_address)
				.finish()
		}
	}
	/// A UDP socket handle.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct UdpSocket {
		handle: _rt::Resource<UdpSocket>,
	}
	impl UdpSocket {
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
	unsafe impl _rt::WasmResource for UdpSocket {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]udp-socket"]
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
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct IncomingDatagramStream {
		handle: _rt::Resource<IncomingDatagramStream>,
	}
	impl IncomingDatagramStream {
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
	unsafe impl _rt::WasmResource for IncomingDatagramStream {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]incoming-datagram-stream"]
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
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct OutgoingDatagramStream {
		handle: _rt::Resource<OutgoingDatagramStream>,
	}
	impl OutgoingDatagramStream {
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
	unsafe impl _rt::WasmResource for OutgoingDatagramStream {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]outgoing-datagram-stream"]
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
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Bind the socket to a specific network on the provided IP address and port.
		///
		/// If the IP address is zero (`0.0.0.0` in IPv4, `::` in IPv6), it is left to the implementation to decide which
		/// network interface(s) to bind to.
		/// If the port is zero, the socket will be bound to a random free port.
		///
		/// # Typical errors
		/// - `invalid-argument`:          The `local-address` has the wrong address family. (EAFNOSUPPORT, EFAULT on Windows)
		/// - `invalid-state`:             The socket is already bound. (EINVAL)
		/// - `address-in-use`:            No ephemeral ports available. (EADDRINUSE, ENOBUFS on Windows)
		/// - `address-in-use`:            Address is already in use. (EADDRINUSE)
		/// - `address-not-bindable`:      `local-address` is not an address that the `network` can bind to. (EADDRNOTAVAIL)
		/// - `not-in-progress`:           A `bind` operation is not in progress.
		/// - `would-block`:               Can't finish the operation, it is still in progress. (EWOULDBLOCK, EAGAIN)
		///
		/// # Implementors note
		/// Unlike in POSIX, in WASI the bind operation is async. This enables
		/// interactive WASI hosts to inject permission prompts. Runtimes that
		/// don't want to make use of this ability can simply call the native
		/// `bind` as part of either `start-bind` or `finish-bind`.
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/bind.html>
		/// - <https://man7.org/linux/man-pages/man2/bind.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock/nf-winsock-bind>
		/// - <https://man.freebsd.org/cgi/man.cgi?query=bind&sektion=2&format=html>
		#[allow(async_fn_in_trait)]
		pub fn start_bind(
			&self,
			network: &Network,
			local_address: IpSocketAddress,
		) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
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
				) = match local_address {
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
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.start-bind"]
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
					_: i32,
					_: i32,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import7(
					(self).handle() as i32,
					(network).handle() as i32,
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
				let result10 = match l8 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l9 = i32::from(*ptr6.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l9 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result10
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn finish_bind(&self) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.finish-bind"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Set up inbound & outbound communication channels, optionally to a specific peer.
		///
		/// This function only changes the local socket configuration and does not generate any network traffic.
		/// On success, the `remote-address` of the socket is updated. The `local-address` may be updated as well,
		/// based on the best network path to `remote-address`.
		///
		/// When a `remote-address` is provided, the returned streams are limited to communicating with that specific peer:
		/// - `send` can only be used to send to this destination.
		/// - `receive` will only return datagrams sent from the provided `remote-address`.
		///
		/// This method may be called multiple times on the same socket to change its association, but
		/// only the most recently returned pair of streams will be operational. Implementations may trap if
		/// the streams returned by a previous invocation haven't been dropped yet before calling `stream` again.
		///
		/// The POSIX equivalent in pseudo-code is:
		/// ```text
		/// if (was previously connected) {
		/// 	connect(s, AF_UNSPEC)
		/// }
		/// if (remote_address is Some) {
		/// 	connect(s, remote_address)
		/// }
		/// ```
		///
		/// Unlike in POSIX, the socket must already be explicitly bound.
		///
		/// # Typical errors
		/// - `invalid-argument`:          The `remote-address` has the wrong address family. (EAFNOSUPPORT)
		/// - `invalid-argument`:          The IP address in `remote-address` is set to INADDR_ANY (`0.0.0.0` / `::`). (EDESTADDRREQ, EADDRNOTAVAIL)
		/// - `invalid-argument`:          The port in `remote-address` is set to 0. (EDESTADDRREQ, EADDRNOTAVAIL)
		/// - `invalid-state`:             The socket is not bound.
		/// - `address-in-use`:            Tried to perform an implicit bind, but there were no ephemeral ports available. (EADDRINUSE, EADDRNOTAVAIL on Linux, EAGAIN on BSD)
		/// - `remote-unreachable`:        The remote address is not reachable. (ECONNRESET, ENETRESET, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN, ENONET)
		/// - `connection-refused`:        The connection was refused. (ECONNREFUSED)
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/connect.html>
		/// - <https://man7.org/linux/man-pages/man2/connect.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock2/nf-winsock2-connect>
		/// - <https://man.freebsd.org/cgi/man.cgi?connect>
		#[allow(async_fn_in_trait)]
		pub fn stream(
			&self,
			remote_address: Option<IpSocketAddress>,
		) -> Result<(IncomingDatagramStream, OutgoingDatagramStream), ErrorCode> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
				let (
					result6_0,
					result6_1,
					result6_2,
					result6_3,
					result6_4,
					result6_5,
					result6_6,
					result6_7,
					result6_8,
					result6_9,
					result6_10,
					result6_11,
					result6_12,
				) = match remote_address {
					Some(e) => {
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
						) = match e {
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
						(
							1i32,
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
						)
					}
					None => {
						(
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
							0i32,
						)
					}
				};
				let ptr7 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.stream"]
					fn wit_import8(
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
						_: i32,
						_: i32,
						_: *mut u8,
					);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import8(
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
					_: i32,
					_: i32,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import8(
					(self).handle() as i32,
					result6_0,
					result6_1,
					result6_2,
					result6_3,
					result6_4,
					result6_5,
					result6_6,
					result6_7,
					result6_8,
					result6_9,
					result6_10,
					result6_11,
					result6_12,
					ptr7,
				);
				let l9 = i32::from(*ptr7.add(0).cast::<u8>());
				let result13 = match l9 {
					0 => {
						let e = {
							let l10 = *ptr7.add(4).cast::<i32>();
							let l11 = *ptr7.add(8).cast::<i32>();
							(
								IncomingDatagramStream::from_handle(l10 as u32),
								OutgoingDatagramStream::from_handle(l11 as u32),
							)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l12 = i32::from(*ptr7.add(4).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l12 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result13
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Get the current bound address.
		///
		/// POSIX mentions:
		/// > If the socket has not been bound to a local name, the value
		/// > stored in the object pointed to by `address` is unspecified.
		///
		/// WASI is stricter and requires `local-address` to return `invalid-state` when the socket hasn't been bound yet.
		///
		/// # Typical errors
		/// - `invalid-state`: The socket is not bound to any local address.
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/getsockname.html>
		/// - <https://man7.org/linux/man-pages/man2/getsockname.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock/nf-winsock-getsockname>
		/// - <https://man.freebsd.org/cgi/man.cgi?getsockname>
		#[allow(async_fn_in_trait)]
		pub fn local_address(&self) -> Result<IpSocketAddress, ErrorCode> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 36]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 36]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.local-address"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result22 = match l2 {
					0 => {
						let e = {
							let l3 = i32::from(*ptr0.add(4).cast::<u8>());
							use super::super::super::wasi::sockets::network::IpSocketAddress as V20;
							let v20 = match l3 {
								0 => {
									let e20 = {
										let l4 = i32::from(*ptr0.add(8).cast::<u16>());
										let l5 = i32::from(*ptr0.add(10).cast::<u8>());
										let l6 = i32::from(*ptr0.add(11).cast::<u8>());
										let l7 = i32::from(*ptr0.add(12).cast::<u8>());
										let l8 = i32::from(*ptr0.add(13).cast::<u8>());
										super::super::super::wasi::sockets::network::Ipv4SocketAddress {
											port: l4 as u16,
											address: (l5 as u8, l6 as u8, l7 as u8, l8 as u8),
										}
									};
									V20::Ipv4(e20)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									let e20 = {
										let l9 = i32::from(*ptr0.add(8).cast::<u16>());
										let l10 = *ptr0.add(12).cast::<i32>();
										let l11 = i32::from(*ptr0.add(16).cast::<u16>());
										let l12 = i32::from(*ptr0.add(18).cast::<u16>());
										let l13 = i32::from(*ptr0.add(20).cast::<u16>());
										let l14 = i32::from(*ptr0.add(22).cast::<u16>());
										let l15 = i32::from(*ptr0.add(24).cast::<u16>());
										let l16 = i32::from(*ptr0.add(26).cast::<u16>());
										let l17 = i32::from(*ptr0.add(28).cast::<u16>());
										let l18 = i32::from(*ptr0.add(30).cast::<u16>());
										let l19 = *ptr0.add(32).cast::<i32>();
										super::super::super::wasi::sockets::network::Ipv6SocketAddress {
											port: l9 as u16,
											flow_info: l10 as u32,
											address: (
												l11 as u16,
												l12 as u16,
												l13 as u16,
												l14 as u16,
												l15 as u16,
												l16 as u16,
												l17 as u16,
												l18 as u16,
											),
											scope_id: l19 as u32,
										}
									};
									V20::Ipv6(e20)
								}
							};
							v20
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l21 = i32::from(*ptr0.add(4).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l21 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result22
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Get the address the socket is currently streaming to.
		///
		/// # Typical errors
		/// - `invalid-state`: The socket is not streaming to a specific remote address. (ENOTCONN)
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/getpeername.html>
		/// - <https://man7.org/linux/man-pages/man2/getpeername.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock/nf-winsock-getpeername>
		/// - <https://man.freebsd.org/cgi/man.cgi?query=getpeername&sektion=2&n=1>
		#[allow(async_fn_in_trait)]
		pub fn remote_address(&self) -> Result<IpSocketAddress, ErrorCode> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 36]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 36]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.remote-address"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result22 = match l2 {
					0 => {
						let e = {
							let l3 = i32::from(*ptr0.add(4).cast::<u8>());
							use super::super::super::wasi::sockets::network::IpSocketAddress as V20;
							let v20 = match l3 {
								0 => {
									let e20 = {
										let l4 = i32::from(*ptr0.add(8).cast::<u16>());
										let l5 = i32::from(*ptr0.add(10).cast::<u8>());
										let l6 = i32::from(*ptr0.add(11).cast::<u8>());
										let l7 = i32::from(*ptr0.add(12).cast::<u8>());
										let l8 = i32::from(*ptr0.add(13).cast::<u8>());
										super::super::super::wasi::sockets::network::Ipv4SocketAddress {
											port: l4 as u16,
											address: (l5 as u8, l6 as u8, l7 as u8, l8 as u8),
										}
									};
									V20::Ipv4(e20)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									let e20 = {
										let l9 = i32::from(*ptr0.add(8).cast::<u16>());
										let l10 = *ptr0.add(12).cast::<i32>();
										let l11 = i32::from(*ptr0.add(16).cast::<u16>());
										let l12 = i32::from(*ptr0.add(18).cast::<u16>());
										let l13 = i32::from(*ptr0.add(20).cast::<u16>());
										let l14 = i32::from(*ptr0.add(22).cast::<u16>());
										let l15 = i32::from(*ptr0.add(24).cast::<u16>());
										let l16 = i32::from(*ptr0.add(26).cast::<u16>());
										let l17 = i32::from(*ptr0.add(28).cast::<u16>());
										let l18 = i32::from(*ptr0.add(30).cast::<u16>());
										let l19 = *ptr0.add(32).cast::<i32>();
										super::super::super::wasi::sockets::network::Ipv6SocketAddress {
											port: l9 as u16,
											flow_info: l10 as u32,
											address: (
												l11 as u16,
												l12 as u16,
												l13 as u16,
												l14 as u16,
												l15 as u16,
												l16 as u16,
												l17 as u16,
												l18 as u16,
											),
											scope_id: l19 as u32,
										}
									};
									V20::Ipv6(e20)
								}
							};
							v20
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l21 = i32::from(*ptr0.add(4).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l21 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result22
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Whether this is a IPv4 or IPv6 socket.
		///
		/// Equivalent to the SO_DOMAIN socket option.
		#[allow(async_fn_in_trait)]
		pub fn address_family(&self) -> IpAddressFamily {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.address-family"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0((self).handle() as i32);
				super::super::super::wasi::sockets::network::IpAddressFamily::_lift(
					ret as u8,
				)
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Equivalent to the IP_TTL & IPV6_UNICAST_HOPS socket options.
		///
		/// If the provided value is 0, an `invalid-argument` error is returned.
		///
		/// # Typical errors
		/// - `invalid-argument`:     (set) The TTL value must be 1 or higher.
		#[allow(async_fn_in_trait)]
		pub fn unicast_hop_limit(&self) -> Result<u8, ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.unicast-hop-limit"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							l3 as u8
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_unicast_hop_limit(&self, value: u8) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.set-unicast-hop-limit"]
					fn wit_import1(_: i32, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i32(&value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// The kernel buffer space reserved for sends/receives on this socket.
		///
		/// If the provided value is 0, an `invalid-argument` error is returned.
		/// Any other value will never cause an error, but it might be silently clamped and/or rounded.
		/// I.e. after setting a value, reading the same setting back may return a different value.
		///
		/// Equivalent to the SO_RCVBUF and SO_SNDBUF socket options.
		///
		/// # Typical errors
		/// - `invalid-argument`:     (set) The provided value was 0.
		#[allow(async_fn_in_trait)]
		pub fn receive_buffer_size(&self) -> Result<u64, ErrorCode> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.receive-buffer-size"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_receive_buffer_size(&self, value: u64) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.set-receive-buffer-size"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn send_buffer_size(&self) -> Result<u64, ErrorCode> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.send-buffer-size"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_send_buffer_size(&self, value: u64) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.set-send-buffer-size"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl UdpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Create a `pollable` which will resolve once the socket is ready for I/O.
		///
		/// Note: this function is here for WASI 0.2 only.
		/// It's planned to be removed when `future` is natively supported in Preview3.
		#[allow(async_fn_in_trait)]
		pub fn subscribe(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]udp-socket.subscribe"]
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
	impl IncomingDatagramStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Receive messages on the socket.
		///
		/// This function attempts to receive up to `max-results` datagrams on the socket without blocking.
		/// The returned list may contain fewer elements than requested, but never more.
		///
		/// This function returns successfully with an empty list when either:
		/// - `max-results` is 0, or:
		/// - `max-results` is greater than 0, but no results are immediately available.
		/// This function never returns `error(would-block)`.
		///
		/// # Typical errors
		/// - `remote-unreachable`: The remote address is not reachable. (ECONNRESET, ENETRESET on Windows, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN, ENONET)
		/// - `connection-refused`: The connection was refused. (ECONNREFUSED)
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/recvfrom.html>
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/recvmsg.html>
		/// - <https://man7.org/linux/man-pages/man2/recv.2.html>
		/// - <https://man7.org/linux/man-pages/man2/recvmmsg.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock/nf-winsock-recv>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock/nf-winsock-recvfrom>
		/// - <https://learn.microsoft.com/en-us/previous-versions/windows/desktop/legacy/ms741687(v=vs.85)>
		/// - <https://man.freebsd.org/cgi/man.cgi?query=recv&sektion=2>
		#[allow(async_fn_in_trait)]
		pub fn receive(
			&self,
			max_results: u64,
		) -> Result<_rt::Vec<IncomingDatagram>, ErrorCode> {
			unsafe {
				#[cfg_attr(target_pointer_width = "64", repr(align(8)))]
				#[cfg_attr(target_pointer_width = "32", repr(align(4)))]
				struct RetArea(
					[::core::mem::MaybeUninit<
						u8,
					>; 3 * ::core::mem::size_of::<*const u8>()],
				);
				let mut ret_area = RetArea(
					[::core::mem::MaybeUninit::uninit(); 3
						* ::core::mem::size_of::<*const u8>()],
				);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]incoming-datagram-stream.receive"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&max_results), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result28 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0
								.add(::core::mem::size_of::<*const u8>())
								.cast::<*mut u8>();
							let l4 = *ptr0
								.add(2 * ::core::mem::size_of::<*const u8>())
								.cast::<usize>();
							let base26 = l3;
							let len26 = l4;
							let mut result26 = _rt::Vec::with_capacity(len26);
							for i in 0..len26 {
								let base = base26
									.add(i * (32 + 2 * ::core::mem::size_of::<*const u8>()));
								let e26 = {
									let l5 = *base.add(0).cast::<*mut u8>();
									let l6 = *base
										.add(::core::mem::size_of::<*const u8>())
										.cast::<usize>();
									let len7 = l6;
									let l8 = i32::from(
										*base
											.add(2 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>(),
									);
									use super::super::super::wasi::sockets::network::IpSocketAddress as V25;
									let v25 = match l8 {
										0 => {
											let e25 = {
												let l9 = i32::from(
													*base
														.add(4 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l10 = i32::from(
													*base
														.add(6 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u8>(),
												);
												let l11 = i32::from(
													*base
														.add(7 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u8>(),
												);
												let l12 = i32::from(
													*base
														.add(8 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u8>(),
												);
												let l13 = i32::from(
													*base
														.add(9 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u8>(),
												);
												super::super::super::wasi::sockets::network::Ipv4SocketAddress {
													port: l9 as u16,
													address: (l10 as u8, l11 as u8, l12 as u8, l13 as u8),
												}
											};
											V25::Ipv4(e25)
										}
										n => {
											debug_assert_eq!(n, 1, "invalid enum discriminant");
											let e25 = {
												let l14 = i32::from(
													*base
														.add(4 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l15 = *base
													.add(8 + 2 * ::core::mem::size_of::<*const u8>())
													.cast::<i32>();
												let l16 = i32::from(
													*base
														.add(12 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l17 = i32::from(
													*base
														.add(14 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l18 = i32::from(
													*base
														.add(16 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l19 = i32::from(
													*base
														.add(18 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l20 = i32::from(
													*base
														.add(20 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l21 = i32::from(
													*base
														.add(22 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l22 = i32::from(
													*base
														.add(24 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l23 = i32::from(
													*base
														.add(26 + 2 * ::core::mem::size_of::<*const u8>())
														.cast::<u16>(),
												);
												let l24 = *base
													.add(28 + 2 * ::core::mem::size_of::<*const u8>())
													.cast::<i32>();
												super::super::super::wasi::sockets::network::Ipv6SocketAddress {
													port: l14 as u16,
													flow_info: l15 as u32,
													address: (
														l16 as u16,
														l17 as u16,
														l18 as u16,
														l19 as u16,
														l20 as u16,
														l21 as u16,
														l22 as u16,
														l23 as u16,
													),
													scope_id: l24 as u32,
												}
											};
											V25::Ipv6(e25)
										}
									};
									IncomingDatagram {
										data: <_ as From<
											_rt::Vec<_>,
										>>::from(_rt::Vec::from_raw_parts(l5.cast(), len7, len7)),
										remote_address: v25,
									}
								};
								result26.push(e26);
							}
							_rt::cabi_dealloc(
								base26,
								len26 * (32 + 2 * ::core::mem::size_of::<*const u8>()),
								::core::mem::size_of::<*const u8>(),
							);
							result26
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l27 = i32::from(
								*ptr0.add(::core::mem::size_of::<*const u8>()).cast::<u8>(),
							);
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l27 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result28
			}
		}
	}
	impl IncomingDatagramStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Create a `pollable` which will resolve once the stream is ready to receive again.
		///
		/// Note: this function is here for WASI 0.2 only.
		/// It's planned to be removed when `future` is natively supported in Preview3.
		#[allow(async_fn_in_trait)]
		pub fn subscribe(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]incoming-datagram-stream.subscribe"]
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
	impl OutgoingDatagramStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Check readiness for sending. This function never blocks.
		///
		/// Returns the number of datagrams permitted for the next call to `send`,
		/// or an error. Calling `send` with more datagrams than this function has
		/// permitted will trap.
		///
		/// When this function returns ok(0), the `subscribe` pollable will
		/// become ready when this function will report at least ok(1), or an
		/// error.
		///
		/// Never returns `would-block`.
		#[allow(async_fn_in_trait)]
		pub fn check_send(&self) -> Result<u64, ErrorCode> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]outgoing-datagram-stream.check-send"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl OutgoingDatagramStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Send messages on the socket.
		///
		/// This function attempts to send all provided `datagrams` on the socket without blocking and
		/// returns how many messages were actually sent (or queued for sending). This function never
		/// returns `error(would-block)`. If none of the datagrams were able to be sent, `ok(0)` is returned.
		///
		/// This function semantically behaves the same as iterating the `datagrams` list and sequentially
		/// sending each individual datagram until either the end of the list has been reached or the first error occurred.
		/// If at least one datagram has been sent successfully, this function never returns an error.
		///
		/// If the input list is empty, the function returns `ok(0)`.
		///
		/// Each call to `send` must be permitted by a preceding `check-send`. Implementations must trap if
		/// either `check-send` was not called or `datagrams` contains more items than `check-send` permitted.
		///
		/// # Typical errors
		/// - `invalid-argument`:        The `remote-address` has the wrong address family. (EAFNOSUPPORT)
		/// - `invalid-argument`:        The IP address in `remote-address` is set to INADDR_ANY (`0.0.0.0` / `::`). (EDESTADDRREQ, EADDRNOTAVAIL)
		/// - `invalid-argument`:        The port in `remote-address` is set to 0. (EDESTADDRREQ, EADDRNOTAVAIL)
		/// - `invalid-argument`:        The socket is in "connected" mode and `remote-address` is `some` value that does not match the address passed to `stream`. (EISCONN)
		/// - `invalid-argument`:        The socket is not "connected" and no value for `remote-address` was provided. (EDESTADDRREQ)
		/// - `remote-unreachable`:      The remote address is not reachable. (ECONNRESET, ENETRESET on Windows, EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN, ENONET)
		/// - `connection-refused`:      The connection was refused. (ECONNREFUSED)
		/// - `datagram-too-large`:      The datagram is too large. (EMSGSIZE)
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/sendto.html>
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/sendmsg.html>
		/// - <https://man7.org/linux/man-pages/man2/send.2.html>
		/// - <https://man7.org/linux/man-pages/man2/sendmmsg.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock2/nf-winsock2-send>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock2/nf-winsock2-sendto>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock2/nf-winsock2-wsasendmsg>
		/// - <https://man.freebsd.org/cgi/man.cgi?query=send&sektion=2>
		#[allow(async_fn_in_trait)]
		pub fn send(&self, datagrams: &[OutgoingDatagram]) -> Result<u64, ErrorCode> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let vec7 = datagrams;
				let len7 = vec7.len();
				let layout7 = _rt::alloc::Layout::from_size_align(
						vec7.len() * (32 + 3 * ::core::mem::size_of::<*const u8>()),
						::core::mem::size_of::<*const u8>(),
					)
					.unwrap();
				let (result7, _cleanup7) = wit_bindgen::rt::Cleanup::new(layout7);
				for (i, e) in vec7.into_iter().enumerate() {
					let base = result7
						.add(i * (32 + 3 * ::core::mem::size_of::<*const u8>()));
					{
						let OutgoingDatagram {
							data: data0,
							remote_address: remote_address0,
						} = e;
						let vec1 = data0;
						let ptr1 = vec1.as_ptr().cast::<u8>();
						let len1 = vec1.len();
						*base.add(::core::mem::size_of::<*const u8>()).cast::<usize>() = len1;
						*base.add(0).cast::<*mut u8>() = ptr1.cast_mut();
						match remote_address0 {
							Some(e) => {
								*base
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<u8>() = (1i32) as u8;
								use super::super::super::wasi::sockets::network::IpSocketAddress as V6;
								match e {
									V6::Ipv4(e) => {
										*base
											.add(4 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>() = (0i32) as u8;
										let super::super::super::wasi::sockets::network::Ipv4SocketAddress {
											port: port2,
											address: address2,
										} = e;
										*base
											.add(8 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(port2)) as u16;
										let (t3_0, t3_1, t3_2, t3_3) = address2;
										*base
											.add(10 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>() = (_rt::as_i32(t3_0)) as u8;
										*base
											.add(11 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>() = (_rt::as_i32(t3_1)) as u8;
										*base
											.add(12 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>() = (_rt::as_i32(t3_2)) as u8;
										*base
											.add(13 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>() = (_rt::as_i32(t3_3)) as u8;
									}
									V6::Ipv6(e) => {
										*base
											.add(4 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u8>() = (1i32) as u8;
										let super::super::super::wasi::sockets::network::Ipv6SocketAddress {
											port: port4,
											flow_info: flow_info4,
											address: address4,
											scope_id: scope_id4,
										} = e;
										*base
											.add(8 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(port4)) as u16;
										*base
											.add(12 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<i32>() = _rt::as_i32(flow_info4);
										let (t5_0, t5_1, t5_2, t5_3, t5_4, t5_5, t5_6, t5_7) = address4;
										*base
											.add(16 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(t5_0)) as u16;
										*base
											.add(18 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(t5_1)) as u16;
										*base
											.add(20 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(t5_2)) as u16;
										*base
											.add(22 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(t5_3)) as u16;
										*base
											.add(24 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(t5_4)) as u16;
										*base
											.add(26 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(t5_5)) as u16;
										*base
											.add(28 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(t5_6)) as u16;
										*base
											.add(30 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<u16>() = (_rt::as_i32(t5_7)) as u16;
										*base
											.add(32 + 2 * ::core::mem::size_of::<*const u8>())
											.cast::<i32>() = _rt::as_i32(scope_id4);
									}
								}
							}
							None => {
								*base
									.add(2 * ::core::mem::size_of::<*const u8>())
									.cast::<u8>() = (0i32) as u8;
							}
						};
					}
				}
				let ptr8 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]outgoing-datagram-stream.send"]
					fn wit_import9(_: i32, _: *mut u8, _: usize, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import9(
					_: i32,
					_: *mut u8,
					_: usize,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import9((self).handle() as i32, result7, len7, ptr8);
				let l10 = i32::from(*ptr8.add(0).cast::<u8>());
				let result13 = match l10 {
					0 => {
						let e = {
							let l11 = *ptr8.add(8).cast::<i64>();
							l11 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l12 = i32::from(*ptr8.add(8).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l12 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result13
			}
		}
	}
	impl OutgoingDatagramStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Create a `pollable` which will resolve once the stream is ready to send again.
		///
		/// Note: this function is here for WASI 0.2 only.
		/// It's planned to be removed when `future` is natively supported in Preview3.
		#[allow(async_fn_in_trait)]
		pub fn subscribe(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/udp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]outgoing-datagram-stream.subscribe"]
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
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod udp_create_socket {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Network = super::super::super::wasi::sockets::network::Network;
	pub type ErrorCode = super::super::super::wasi::sockets::network::ErrorCode;
	pub type IpAddressFamily = super::super::super::wasi::sockets::network::IpAddressFamily;
	pub type UdpSocket = super::super::super::wasi::sockets::udp::UdpSocket;
	#[allow(unused_unsafe, clippy::all)]
	/// Create a new UDP socket.
	///
	/// Similar to `socket(AF_INET or AF_INET6, SOCK_DGRAM, IPPROTO_UDP)` in POSIX.
	/// On IPv6 sockets, IPV6_V6ONLY is enabled by default and can't be configured otherwise.
	///
	/// This function does not require a network capability handle. This is considered to be safe because
	/// at time of creation, the socket is not bound to any `network` yet. Up to the moment `bind` is called,
	/// the socket is effectively an in-memory configuration object, unable to communicate with the outside world.
	///
	/// All sockets are non-blocking. Use the wasi-poll interface to block on asynchronous operations.
	///
	/// # Typical errors
	/// - `not-supported`:     The specified `address-family` is not supported. (EAFNOSUPPORT)
	/// - `new-socket-limit`:  The new socket resource could not be created because of a system limit. (EMFILE, ENFILE)
	///
	/// # References:
	/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/socket.html>
	/// - <https://man7.org/linux/man-pages/man2/socket.2.html>
	/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock2/nf-winsock2-wsasocketw>
	/// - <https://man.freebsd.org/cgi/man.cgi?query=socket&sektion=2>
	#[allow(async_fn_in_trait)]
	pub fn create_udp_socket(
		address_family: IpAddressFamily,
	) -> Result<UdpSocket, ErrorCode> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/udp-create-socket@0.2.12")]
			unsafe extern "C" {
				#[link_name = "create-udp-socket"]
				fn wit_import1(_: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import1(address_family.clone() as i32, ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result5 = match l2 {
				0 => {
					let e = {
						let l3 = *ptr0.add(4).cast::<i32>();
						super::super::super::wasi::sockets::udp::UdpSocket::from_handle(
							l3 as u32,
						)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l4 = i32::from(*ptr0.add(4).cast::<u8>());
						super::super::super::wasi::sockets::network::ErrorCode::_lift(
							l4 as u8,
						)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result5
		}
	}
}
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod tcp {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type InputStream = super::super::super::wasi::io::streams::InputStream;
	pub type OutputStream = super::super::super::wasi::io::streams::OutputStream;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	pub type Duration = super::super::super::wasi::clocks::monotonic_clock::Duration;
	pub type Network = super::super::super::wasi::sockets::network::Network;
	pub type ErrorCode = super::super::super::wasi::sockets::network::ErrorCode;
	pub type IpSocketAddress = super::super::super::wasi::sockets::network::IpSocketAddress;
	pub type IpAddressFamily = super::super::super::wasi::sockets::network::IpAddressFamily;
	#[repr(u8)]
	#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
	pub enum ShutdownType {
		/// Similar to `SHUT_RD` in POSIX.
		Receive,
		/// Similar to `SHUT_WR` in POSIX.
		Send,
		/// Similar to `SHUT_RDWR` in POSIX.
		Both,
	}
	impl ::core::fmt::Debug for ShutdownType {
		fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
			match self {
				ShutdownType::Receive => f.debug_tuple("ShutdownType::Receive").finish(),
				ShutdownType::Send => f.debug_tuple("ShutdownType::Send").finish(),
				ShutdownType::Both => f.debug_tuple("ShutdownType::Both").finish(),
			}
		}
	}
	impl ShutdownType {
		#[doc(hidden)]
		pub unsafe fn _lift(val: u8) -> ShutdownType {
			if !cfg!(debug_assertions) {
				return unsafe { ::core::mem::transmute(val) };
			}
			match val {
				0 => ShutdownType::Receive,
				1 => ShutdownType::Send,
				2 => ShutdownType::Both,
				_ => panic!("invalid enum discriminant"),
			}
		}
	}
	/// A TCP socket resource.
	///
	/// The socket can be in one of the following states:
	/// - `unbound`
	/// - `bind-in-progress`
	/// - `bound` (See note below)
	/// - `listen-in-progress`
	/// - `listening`
	/// - `connect-in-progress`
	/// - `connected`
	/// - `closed`
	/// See <https://github.com/WebAssembly/WASI/blob/main/proposals/sockets/TcpSocketOperationalSemantics.md>
	/// for more information.
	///
	/// Note: Except where explicitly mentioned, whenever this documentation uses
	/// the term "bound" without backticks it actually means: in the `bound` state *or higher*.
	/// (i.e. `bound`, `listen-in-progress`, `listening`, `connect-in-progress` or `connected`)
	///
	/// In addition to the general error codes documented on the
	/// `network::error-code` type, TCP socket methods may always return
	/// `error(invalid-state)` when in the `closed` state.
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct TcpSocket {
		handle: _rt::Resource<TcpSocket>,
	}
	impl TcpSocket {
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
	unsafe impl _rt::WasmResource for TcpSocket {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]tcp-socket"]
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
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Bind the socket to a specific network on the provided IP address and port.
		///
		/// If the IP address is zero (`0.0.0.0` in IPv4, `::` in IPv6), it is left to the implementation to decide which
		/// network interface(s) to bind to.
		/// If the TCP/UDP port is zero, the socket will be bound to a random free port.
		///
		/// Bind can be attempted multiple times on the same socket, even with
		/// different arguments on each iteration. But never concurrently and
		/// only as long as the previous bind failed. Once a bind succeeds, the
		/// binding can't be changed anymore.
		///
		/// # Typical errors
		/// - `invalid-argument`:          The `local-address` has the wrong address family. (EAFNOSUPPORT, EFAULT on Windows)
		/// - `invalid-argument`:          `local-address` is not a unicast address. (EINVAL)
		/// - `invalid-argument`:          `local-address` is an IPv4-mapped IPv6 address. (EINVAL)
		/// - `invalid-state`:             The socket is already bound. (EINVAL)
		/// - `address-in-use`:            No ephemeral ports available. (EADDRINUSE, ENOBUFS on Windows)
		/// - `address-in-use`:            Address is already in use. (EADDRINUSE)
		/// - `address-not-bindable`:      `local-address` is not an address that the `network` can bind to. (EADDRNOTAVAIL)
		/// - `not-in-progress`:           A `bind` operation is not in progress.
		/// - `would-block`:               Can't finish the operation, it is still in progress. (EWOULDBLOCK, EAGAIN)
		///
		/// # Implementors note
		/// When binding to a non-zero port, this bind operation shouldn't be affected by the TIME_WAIT
		/// state of a recently closed socket on the same local address. In practice this means that the SO_REUSEADDR
		/// socket option should be set implicitly on all platforms, except on Windows where this is the default behavior
		/// and SO_REUSEADDR performs something different entirely.
		///
		/// Unlike in POSIX, in WASI the bind operation is async. This enables
		/// interactive WASI hosts to inject permission prompts. Runtimes that
		/// don't want to make use of this ability can simply call the native
		/// `bind` as part of either `start-bind` or `finish-bind`.
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/bind.html>
		/// - <https://man7.org/linux/man-pages/man2/bind.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock/nf-winsock-bind>
		/// - <https://man.freebsd.org/cgi/man.cgi?query=bind&sektion=2&format=html>
		#[allow(async_fn_in_trait)]
		pub fn start_bind(
			&self,
			network: &Network,
			local_address: IpSocketAddress,
		) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
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
				) = match local_address {
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
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.start-bind"]
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
					_: i32,
					_: i32,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import7(
					(self).handle() as i32,
					(network).handle() as i32,
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
				let result10 = match l8 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l9 = i32::from(*ptr6.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l9 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result10
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn finish_bind(&self) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.finish-bind"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Connect to a remote endpoint.
		///
		/// On success:
		/// - the socket is transitioned into the `connected` state.
		/// - a pair of streams is returned that can be used to read & write to the connection
		///
		/// After a failed connection attempt, the socket will be in the `closed`
		/// state and the only valid action left is to `drop` the socket. A single
		/// socket can not be used to connect more than once.
		///
		/// # Typical errors
		/// - `invalid-argument`:          The `remote-address` has the wrong address family. (EAFNOSUPPORT)
		/// - `invalid-argument`:          `remote-address` is not a unicast address. (EINVAL, ENETUNREACH on Linux, EAFNOSUPPORT on MacOS)
		/// - `invalid-argument`:          `remote-address` is an IPv4-mapped IPv6 address. (EINVAL, EADDRNOTAVAIL on Illumos)
		/// - `invalid-argument`:          The IP address in `remote-address` is set to INADDR_ANY (`0.0.0.0` / `::`). (EADDRNOTAVAIL on Windows)
		/// - `invalid-argument`:          The port in `remote-address` is set to 0. (EADDRNOTAVAIL on Windows)
		/// - `invalid-argument`:          The socket is already attached to a different network. The `network` passed to `connect` must be identical to the one passed to `bind`.
		/// - `invalid-state`:             The socket is already in the `connected` state. (EISCONN)
		/// - `invalid-state`:             The socket is already in the `listening` state. (EOPNOTSUPP, EINVAL on Windows)
		/// - `timeout`:                   Connection timed out. (ETIMEDOUT)
		/// - `connection-refused`:        The connection was forcefully rejected. (ECONNREFUSED)
		/// - `connection-reset`:          The connection was reset. (ECONNRESET)
		/// - `connection-aborted`:        The connection was aborted. (ECONNABORTED)
		/// - `remote-unreachable`:        The remote address is not reachable. (EHOSTUNREACH, EHOSTDOWN, ENETUNREACH, ENETDOWN, ENONET)
		/// - `address-in-use`:            Tried to perform an implicit bind, but there were no ephemeral ports available. (EADDRINUSE, EADDRNOTAVAIL on Linux, EAGAIN on BSD)
		/// - `not-in-progress`:           A connect operation is not in progress.
		/// - `would-block`:               Can't finish the operation, it is still in progress. (EWOULDBLOCK, EAGAIN)
		///
		/// # Implementors note
		/// The POSIX equivalent of `start-connect` is the regular `connect` syscall.
		/// Because all WASI sockets are non-blocking this is expected to return
		/// EINPROGRESS, which should be translated to `ok()` in WASI.
		///
		/// The POSIX equivalent of `finish-connect` is a `poll` for event `POLLOUT`
		/// with a timeout of 0 on the socket descriptor. Followed by a check for
		/// the `SO_ERROR` socket option, in case the poll signaled readiness.
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/connect.html>
		/// - <https://man7.org/linux/man-pages/man2/connect.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock2/nf-winsock2-connect>
		/// - <https://man.freebsd.org/cgi/man.cgi?connect>
		#[allow(async_fn_in_trait)]
		pub fn start_connect(
			&self,
			network: &Network,
			remote_address: IpSocketAddress,
		) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
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
				) = match remote_address {
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
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.start-connect"]
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
					_: i32,
					_: i32,
					_: *mut u8,
				) {
					unreachable!()
				}
				wit_import7(
					(self).handle() as i32,
					(network).handle() as i32,
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
				let result10 = match l8 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l9 = i32::from(*ptr6.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l9 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result10
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn finish_connect(&self) -> Result<(InputStream, OutputStream), ErrorCode> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 12]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 12]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.finish-connect"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result6 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(4).cast::<i32>();
							let l4 = *ptr0.add(8).cast::<i32>();
							(
								super::super::super::wasi::io::streams::InputStream::from_handle(
									l3 as u32,
								),
								super::super::super::wasi::io::streams::OutputStream::from_handle(
									l4 as u32,
								),
							)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l5 = i32::from(*ptr0.add(4).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
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
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Start listening for new connections.
		///
		/// Transitions the socket into the `listening` state.
		///
		/// Unlike POSIX, the socket must already be explicitly bound.
		///
		/// # Typical errors
		/// - `invalid-state`:             The socket is not bound to any local address. (EDESTADDRREQ)
		/// - `invalid-state`:             The socket is already in the `connected` state. (EISCONN, EINVAL on BSD)
		/// - `invalid-state`:             The socket is already in the `listening` state.
		/// - `address-in-use`:            Tried to perform an implicit bind, but there were no ephemeral ports available. (EADDRINUSE)
		/// - `not-in-progress`:           A listen operation is not in progress.
		/// - `would-block`:               Can't finish the operation, it is still in progress. (EWOULDBLOCK, EAGAIN)
		///
		/// # Implementors note
		/// Unlike in POSIX, in WASI the listen operation is async. This enables
		/// interactive WASI hosts to inject permission prompts. Runtimes that
		/// don't want to make use of this ability can simply call the native
		/// `listen` as part of either `start-listen` or `finish-listen`.
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/listen.html>
		/// - <https://man7.org/linux/man-pages/man2/listen.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock2/nf-winsock2-listen>
		/// - <https://man.freebsd.org/cgi/man.cgi?query=listen&sektion=2>
		#[allow(async_fn_in_trait)]
		pub fn start_listen(&self) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.start-listen"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn finish_listen(&self) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.finish-listen"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Accept a new client socket.
		///
		/// The returned socket is bound and in the `connected` state. The following properties are inherited from the listener socket:
		/// - `address-family`
		/// - `keep-alive-enabled`
		/// - `keep-alive-idle-time`
		/// - `keep-alive-interval`
		/// - `keep-alive-count`
		/// - `hop-limit`
		/// - `receive-buffer-size`
		/// - `send-buffer-size`
		///
		/// On success, this function returns the newly accepted client socket along with
		/// a pair of streams that can be used to read & write to the connection.
		///
		/// # Typical errors
		/// - `invalid-state`:      Socket is not in the `listening` state. (EINVAL)
		/// - `would-block`:        No pending connections at the moment. (EWOULDBLOCK, EAGAIN)
		/// - `connection-aborted`: An incoming connection was pending, but was terminated by the client before this listener could accept it. (ECONNABORTED)
		/// - `new-socket-limit`:   The new socket resource could not be created because of a system limit. (EMFILE, ENFILE)
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/accept.html>
		/// - <https://man7.org/linux/man-pages/man2/accept.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock2/nf-winsock2-accept>
		/// - <https://man.freebsd.org/cgi/man.cgi?query=accept&sektion=2>
		#[allow(async_fn_in_trait)]
		pub fn accept(
			&self,
		) -> Result<(TcpSocket, InputStream, OutputStream), ErrorCode> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.accept"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result7 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(4).cast::<i32>();
							let l4 = *ptr0.add(8).cast::<i32>();
							let l5 = *ptr0.add(12).cast::<i32>();
							(
								TcpSocket::from_handle(l3 as u32),
								super::super::super::wasi::io::streams::InputStream::from_handle(
									l4 as u32,
								),
								super::super::super::wasi::io::streams::OutputStream::from_handle(
									l5 as u32,
								),
							)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l6 = i32::from(*ptr0.add(4).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l6 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result7
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Get the bound local address.
		///
		/// POSIX mentions:
		/// > If the socket has not been bound to a local name, the value
		/// > stored in the object pointed to by `address` is unspecified.
		///
		/// WASI is stricter and requires `local-address` to return `invalid-state` when the socket hasn't been bound yet.
		///
		/// # Typical errors
		/// - `invalid-state`: The socket is not bound to any local address.
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/getsockname.html>
		/// - <https://man7.org/linux/man-pages/man2/getsockname.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock/nf-winsock-getsockname>
		/// - <https://man.freebsd.org/cgi/man.cgi?getsockname>
		#[allow(async_fn_in_trait)]
		pub fn local_address(&self) -> Result<IpSocketAddress, ErrorCode> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 36]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 36]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.local-address"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result22 = match l2 {
					0 => {
						let e = {
							let l3 = i32::from(*ptr0.add(4).cast::<u8>());
							use super::super::super::wasi::sockets::network::IpSocketAddress as V20;
							let v20 = match l3 {
								0 => {
									let e20 = {
										let l4 = i32::from(*ptr0.add(8).cast::<u16>());
										let l5 = i32::from(*ptr0.add(10).cast::<u8>());
										let l6 = i32::from(*ptr0.add(11).cast::<u8>());
										let l7 = i32::from(*ptr0.add(12).cast::<u8>());
										let l8 = i32::from(*ptr0.add(13).cast::<u8>());
										super::super::super::wasi::sockets::network::Ipv4SocketAddress {
											port: l4 as u16,
											address: (l5 as u8, l6 as u8, l7 as u8, l8 as u8),
										}
									};
									V20::Ipv4(e20)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									let e20 = {
										let l9 = i32::from(*ptr0.add(8).cast::<u16>());
										let l10 = *ptr0.add(12).cast::<i32>();
										let l11 = i32::from(*ptr0.add(16).cast::<u16>());
										let l12 = i32::from(*ptr0.add(18).cast::<u16>());
										let l13 = i32::from(*ptr0.add(20).cast::<u16>());
										let l14 = i32::from(*ptr0.add(22).cast::<u16>());
										let l15 = i32::from(*ptr0.add(24).cast::<u16>());
										let l16 = i32::from(*ptr0.add(26).cast::<u16>());
										let l17 = i32::from(*ptr0.add(28).cast::<u16>());
										let l18 = i32::from(*ptr0.add(30).cast::<u16>());
										let l19 = *ptr0.add(32).cast::<i32>();
										super::super::super::wasi::sockets::network::Ipv6SocketAddress {
											port: l9 as u16,
											flow_info: l10 as u32,
											address: (
												l11 as u16,
												l12 as u16,
												l13 as u16,
												l14 as u16,
												l15 as u16,
												l16 as u16,
												l17 as u16,
												l18 as u16,
											),
											scope_id: l19 as u32,
										}
									};
									V20::Ipv6(e20)
								}
							};
							v20
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l21 = i32::from(*ptr0.add(4).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l21 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result22
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Get the remote address.
		///
		/// # Typical errors
		/// - `invalid-state`: The socket is not connected to a remote address. (ENOTCONN)
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/getpeername.html>
		/// - <https://man7.org/linux/man-pages/man2/getpeername.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock/nf-winsock-getpeername>
		/// - <https://man.freebsd.org/cgi/man.cgi?query=getpeername&sektion=2&n=1>
		#[allow(async_fn_in_trait)]
		pub fn remote_address(&self) -> Result<IpSocketAddress, ErrorCode> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 36]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 36]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.remote-address"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result22 = match l2 {
					0 => {
						let e = {
							let l3 = i32::from(*ptr0.add(4).cast::<u8>());
							use super::super::super::wasi::sockets::network::IpSocketAddress as V20;
							let v20 = match l3 {
								0 => {
									let e20 = {
										let l4 = i32::from(*ptr0.add(8).cast::<u16>());
										let l5 = i32::from(*ptr0.add(10).cast::<u8>());
										let l6 = i32::from(*ptr0.add(11).cast::<u8>());
										let l7 = i32::from(*ptr0.add(12).cast::<u8>());
										let l8 = i32::from(*ptr0.add(13).cast::<u8>());
										super::super::super::wasi::sockets::network::Ipv4SocketAddress {
											port: l4 as u16,
											address: (l5 as u8, l6 as u8, l7 as u8, l8 as u8),
										}
									};
									V20::Ipv4(e20)
								}
								n => {
									debug_assert_eq!(n, 1, "invalid enum discriminant");
									let e20 = {
										let l9 = i32::from(*ptr0.add(8).cast::<u16>());
										let l10 = *ptr0.add(12).cast::<i32>();
										let l11 = i32::from(*ptr0.add(16).cast::<u16>());
										let l12 = i32::from(*ptr0.add(18).cast::<u16>());
										let l13 = i32::from(*ptr0.add(20).cast::<u16>());
										let l14 = i32::from(*ptr0.add(22).cast::<u16>());
										let l15 = i32::from(*ptr0.add(24).cast::<u16>());
										let l16 = i32::from(*ptr0.add(26).cast::<u16>());
										let l17 = i32::from(*ptr0.add(28).cast::<u16>());
										let l18 = i32::from(*ptr0.add(30).cast::<u16>());
										let l19 = *ptr0.add(32).cast::<i32>();
										super::super::super::wasi::sockets::network::Ipv6SocketAddress {
											port: l9 as u16,
											flow_info: l10 as u32,
											address: (
												l11 as u16,
												l12 as u16,
												l13 as u16,
												l14 as u16,
												l15 as u16,
												l16 as u16,
												l17 as u16,
												l18 as u16,
											),
											scope_id: l19 as u32,
										}
									};
									V20::Ipv6(e20)
								}
							};
							v20
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l21 = i32::from(*ptr0.add(4).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l21 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result22
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Whether the socket is in the `listening` state.
		///
		/// Equivalent to the SO_ACCEPTCONN socket option.
		#[allow(async_fn_in_trait)]
		pub fn is_listening(&self) -> bool {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.is-listening"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0((self).handle() as i32);
				_rt::bool_lift(ret as u8)
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Whether this is a IPv4 or IPv6 socket.
		///
		/// Equivalent to the SO_DOMAIN socket option.
		#[allow(async_fn_in_trait)]
		pub fn address_family(&self) -> IpAddressFamily {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.address-family"]
					fn wit_import0(_: i32) -> i32;
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import0(_: i32) -> i32 {
					unreachable!()
				}
				let ret = wit_import0((self).handle() as i32);
				super::super::super::wasi::sockets::network::IpAddressFamily::_lift(
					ret as u8,
				)
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Hints the desired listen queue size. Implementations are free to ignore this.
		///
		/// If the provided value is 0, an `invalid-argument` error is returned.
		/// Any other value will never cause an error, but it might be silently clamped and/or rounded.
		///
		/// # Typical errors
		/// - `not-supported`:        (set) The platform does not support changing the backlog size after the initial listen.
		/// - `invalid-argument`:     (set) The provided value was 0.
		/// - `invalid-state`:        (set) The socket is in the `connect-in-progress` or `connected` state.
		#[allow(async_fn_in_trait)]
		pub fn set_listen_backlog_size(&self, value: u64) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.set-listen-backlog-size"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Enables or disables keepalive.
		///
		/// The keepalive behavior can be adjusted using:
		/// - `keep-alive-idle-time`
		/// - `keep-alive-interval`
		/// - `keep-alive-count`
		/// These properties can be configured while `keep-alive-enabled` is false, but only come into effect when `keep-alive-enabled` is true.
		///
		/// Equivalent to the SO_KEEPALIVE socket option.
		#[allow(async_fn_in_trait)]
		pub fn keep_alive_enabled(&self) -> Result<bool, ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.keep-alive-enabled"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							_rt::bool_lift(l3 as u8)
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_keep_alive_enabled(&self, value: bool) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.set-keep-alive-enabled"]
					fn wit_import1(_: i32, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1(
					(self).handle() as i32,
					match &value {
						true => 1,
						false => 0,
					},
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
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Amount of time the connection has to be idle before TCP starts sending keepalive packets.
		///
		/// If the provided value is 0, an `invalid-argument` error is returned.
		/// Any other value will never cause an error, but it might be silently clamped and/or rounded.
		/// I.e. after setting a value, reading the same setting back may return a different value.
		///
		/// Equivalent to the TCP_KEEPIDLE socket option. (TCP_KEEPALIVE on MacOS)
		///
		/// # Typical errors
		/// - `invalid-argument`:     (set) The provided value was 0.
		#[allow(async_fn_in_trait)]
		pub fn keep_alive_idle_time(&self) -> Result<Duration, ErrorCode> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.keep-alive-idle-time"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_keep_alive_idle_time(
			&self,
			value: Duration,
		) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.set-keep-alive-idle-time"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// The time between keepalive packets.
		///
		/// If the provided value is 0, an `invalid-argument` error is returned.
		/// Any other value will never cause an error, but it might be silently clamped and/or rounded.
		/// I.e. after setting a value, reading the same setting back may return a different value.
		///
		/// Equivalent to the TCP_KEEPINTVL socket option.
		///
		/// # Typical errors
		/// - `invalid-argument`:     (set) The provided value was 0.
		#[allow(async_fn_in_trait)]
		pub fn keep_alive_interval(&self) -> Result<Duration, ErrorCode> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.keep-alive-interval"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_keep_alive_interval(&self, value: Duration) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.set-keep-alive-interval"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// The maximum amount of keepalive packets TCP should send before aborting the connection.
		///
		/// If the provided value is 0, an `invalid-argument` error is returned.
		/// Any other value will never cause an error, but it might be silently clamped and/or rounded.
		/// I.e. after setting a value, reading the same setting back may return a different value.
		///
		/// Equivalent to the TCP_KEEPCNT socket option.
		///
		/// # Typical errors
		/// - `invalid-argument`:     (set) The provided value was 0.
		#[allow(async_fn_in_trait)]
		pub fn keep_alive_count(&self) -> Result<u32, ErrorCode> {
			unsafe {
				#[repr(align(4))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.keep-alive-count"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(4).cast::<i32>();
							l3 as u32
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(4).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_keep_alive_count(&self, value: u32) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.set-keep-alive-count"]
					fn wit_import1(_: i32, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i32(&value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Equivalent to the IP_TTL & IPV6_UNICAST_HOPS socket options.
		///
		/// If the provided value is 0, an `invalid-argument` error is returned.
		///
		/// # Typical errors
		/// - `invalid-argument`:     (set) The TTL value must be 1 or higher.
		#[allow(async_fn_in_trait)]
		pub fn hop_limit(&self) -> Result<u8, ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.hop-limit"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							l3 as u8
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_hop_limit(&self, value: u8) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.set-hop-limit"]
					fn wit_import1(_: i32, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i32(&value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// The kernel buffer space reserved for sends/receives on this socket.
		///
		/// If the provided value is 0, an `invalid-argument` error is returned.
		/// Any other value will never cause an error, but it might be silently clamped and/or rounded.
		/// I.e. after setting a value, reading the same setting back may return a different value.
		///
		/// Equivalent to the SO_RCVBUF and SO_SNDBUF socket options.
		///
		/// # Typical errors
		/// - `invalid-argument`:     (set) The provided value was 0.
		#[allow(async_fn_in_trait)]
		pub fn receive_buffer_size(&self) -> Result<u64, ErrorCode> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.receive-buffer-size"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_receive_buffer_size(&self, value: u64) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.set-receive-buffer-size"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn send_buffer_size(&self) -> Result<u64, ErrorCode> {
			unsafe {
				#[repr(align(8))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 16]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 16]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.send-buffer-size"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result5 = match l2 {
					0 => {
						let e = {
							let l3 = *ptr0.add(8).cast::<i64>();
							l3 as u64
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l4 = i32::from(*ptr0.add(8).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l4 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result5
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		#[allow(async_fn_in_trait)]
		pub fn set_send_buffer_size(&self, value: u64) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.set-send-buffer-size"]
					fn wit_import1(_: i32, _: i64, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i64, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, _rt::as_i64(&value), ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Create a `pollable` which can be used to poll for, or block on,
		/// completion of any of the asynchronous operations of this socket.
		///
		/// When `finish-bind`, `finish-listen`, `finish-connect` or `accept`
		/// return `error(would-block)`, this pollable can be used to wait for
		/// their success or failure, after which the method can be retried.
		///
		/// The pollable is not limited to the async operation that happens to be
		/// in progress at the time of calling `subscribe` (if any). Theoretically,
		/// `subscribe` only has to be called once per socket and can then be
		/// (re)used for the remainder of the socket's lifetime.
		///
		/// See <https://github.com/WebAssembly/WASI/blob/main/proposals/sockets/TcpSocketOperationalSemantics.md#pollable-readiness>
		/// for more information.
		///
		/// Note: this function is here for WASI 0.2 only.
		/// It's planned to be removed when `future` is natively supported in Preview3.
		#[allow(async_fn_in_trait)]
		pub fn subscribe(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.subscribe"]
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
	impl TcpSocket {
		#[allow(unused_unsafe, clippy::all)]
		/// Initiate a graceful shutdown.
		///
		/// - `receive`: The socket is not expecting to receive any data from
		///   the peer. The `input-stream` associated with this socket will be
		///   closed. Any data still in the receive queue at time of calling
		///   this method will be discarded.
		/// - `send`: The socket has no more data to send to the peer. The `output-stream`
		///   associated with this socket will be closed and a FIN packet will be sent.
		/// - `both`: Same effect as `receive` & `send` combined.
		///
		/// This function is idempotent; shutting down a direction more than once
		/// has no effect and returns `ok`.
		///
		/// The shutdown function does not close (drop) the socket.
		///
		/// # Typical errors
		/// - `invalid-state`: The socket is not in the `connected` state. (ENOTCONN)
		///
		/// # References
		/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/shutdown.html>
		/// - <https://man7.org/linux/man-pages/man2/shutdown.2.html>
		/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock/nf-winsock-shutdown>
		/// - <https://man.freebsd.org/cgi/man.cgi?query=shutdown&sektion=2>
		#[allow(async_fn_in_trait)]
		pub fn shutdown(&self, shutdown_type: ShutdownType) -> Result<(), ErrorCode> {
			unsafe {
				#[repr(align(1))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 2]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 2]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/tcp@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]tcp-socket.shutdown"]
					fn wit_import1(_: i32, _: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, shutdown_type.clone() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result4 = match l2 {
					0 => {
						let e = ();
						Ok(e)
					}
					1 => {
						let e = {
							let l3 = i32::from(*ptr0.add(1).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l3 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result4
			}
		}
	}
}
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod tcp_create_socket {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Network = super::super::super::wasi::sockets::network::Network;
	pub type ErrorCode = super::super::super::wasi::sockets::network::ErrorCode;
	pub type IpAddressFamily = super::super::super::wasi::sockets::network::IpAddressFamily;
	pub type TcpSocket = super::super::super::wasi::sockets::tcp::TcpSocket;
	#[allow(unused_unsafe, clippy::all)]
	/// Create a new TCP socket.
	///
	/// Similar to `socket(AF_INET or AF_INET6, SOCK_STREAM, IPPROTO_TCP)` in POSIX.
	/// On IPv6 sockets, IPV6_V6ONLY is enabled by default and can't be configured otherwise.
	///
	/// This function does not require a network capability handle. This is considered to be safe because
	/// at time of creation, the socket is not bound to any `network` yet. Up to the moment `bind`/`connect`
	/// is called, the socket is effectively an in-memory configuration object, unable to communicate with the outside world.
	///
	/// All sockets are non-blocking. Use the wasi-poll interface to block on asynchronous operations.
	///
	/// # Typical errors
	/// - `not-supported`:     The specified `address-family` is not supported. (EAFNOSUPPORT)
	/// - `new-socket-limit`:  The new socket resource could not be created because of a system limit. (EMFILE, ENFILE)
	///
	/// # References
	/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/socket.html>
	/// - <https://man7.org/linux/man-pages/man2/socket.2.html>
	/// - <https://learn.microsoft.com/en-us/windows/win32/api/winsock2/nf-winsock2-wsasocketw>
	/// - <https://man.freebsd.org/cgi/man.cgi?query=socket&sektion=2>
	#[allow(async_fn_in_trait)]
	pub fn create_tcp_socket(
		address_family: IpAddressFamily,
	) -> Result<TcpSocket, ErrorCode> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
			let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/tcp-create-socket@0.2.12")]
			unsafe extern "C" {
				#[link_name = "create-tcp-socket"]
				fn wit_import1(_: i32, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
				unreachable!()
			}
			wit_import1(address_family.clone() as i32, ptr0);
			let l2 = i32::from(*ptr0.add(0).cast::<u8>());
			let result5 = match l2 {
				0 => {
					let e = {
						let l3 = *ptr0.add(4).cast::<i32>();
						super::super::super::wasi::sockets::tcp::TcpSocket::from_handle(
							l3 as u32,
						)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l4 = i32::from(*ptr0.add(4).cast::<u8>());
						super::super::super::wasi::sockets::network::ErrorCode::_lift(
							l4 as u8,
						)
					};
					Err(e)
				}
				_ => _rt::invalid_enum_discriminant(),
			};
			result5
		}
	}
}
#[allow(dead_code, async_fn_in_trait, unused_imports, clippy::all)]
pub mod ip_name_lookup {
	#[used]
	#[doc(hidden)]
	static __FORCE_SECTION_REF: fn() = super::super::super::__link_custom_section_describing_imports;
	use super::super::super::_rt;
	pub type Pollable = super::super::super::wasi::io::poll::Pollable;
	pub type Network = super::super::super::wasi::sockets::network::Network;
	pub type ErrorCode = super::super::super::wasi::sockets::network::ErrorCode;
	pub type IpAddress = super::super::super::wasi::sockets::network::IpAddress;
	#[derive(Debug)]
	#[repr(transparent)]
	pub struct ResolveAddressStream {
		handle: _rt::Resource<ResolveAddressStream>,
	}
	impl ResolveAddressStream {
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
	unsafe impl _rt::WasmResource for ResolveAddressStream {
		#[inline]
		unsafe fn drop(_handle: u32) {
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/ip-name-lookup@0.2.12")]
			unsafe extern "C" {
				#[link_name = "[resource-drop]resolve-address-stream"]
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
	impl ResolveAddressStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Returns the next address from the resolver.
		///
		/// This function should be called multiple times. On each call, it will
		/// return the next address in connection order preference. If all
		/// addresses have been exhausted, this function returns `none`.
		///
		/// This function never returns IPv4-mapped IPv6 addresses.
		///
		/// # Typical errors
		/// - `name-unresolvable`:          Name does not exist or has no suitable associated IP addresses. (EAI_NONAME, EAI_NODATA, EAI_ADDRFAMILY)
		/// - `temporary-resolver-failure`: A temporary failure in name resolution occurred. (EAI_AGAIN)
		/// - `permanent-resolver-failure`: A permanent failure in name resolution occurred. (EAI_FAIL)
		/// - `would-block`:                A result is not available yet. (EWOULDBLOCK, EAGAIN)
		#[allow(async_fn_in_trait)]
		pub fn resolve_next_address(&self) -> Result<Option<IpAddress>, ErrorCode> {
			unsafe {
				#[repr(align(2))]
				struct RetArea([::core::mem::MaybeUninit<u8>; 22]);
				let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 22]);
				let ptr0 = ret_area.0.as_mut_ptr().cast::<u8>();
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/ip-name-lookup@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]resolve-address-stream.resolve-next-address"]
					fn wit_import1(_: i32, _: *mut u8);
				}
				#[cfg(not(target_arch = "wasm32"))]
				unsafe extern "C" fn wit_import1(_: i32, _: *mut u8) {
					unreachable!()
				}
				wit_import1((self).handle() as i32, ptr0);
				let l2 = i32::from(*ptr0.add(0).cast::<u8>());
				let result19 = match l2 {
					0 => {
						let e = {
							let l3 = i32::from(*ptr0.add(2).cast::<u8>());
							match l3 {
								0 => None,
								1 => {
									let e = {
										let l4 = i32::from(*ptr0.add(4).cast::<u8>());
										use super::super::super::wasi::sockets::network::IpAddress as V17;
										let v17 = match l4 {
											0 => {
												let e17 = {
													let l5 = i32::from(*ptr0.add(6).cast::<u8>());
													let l6 = i32::from(*ptr0.add(7).cast::<u8>());
													let l7 = i32::from(*ptr0.add(8).cast::<u8>());
													let l8 = i32::from(*ptr0.add(9).cast::<u8>());
													(l5 as u8, l6 as u8, l7 as u8, l8 as u8)
												};
												V17::Ipv4(e17)
											}
											n => {
												debug_assert_eq!(n, 1, "invalid enum discriminant");
												let e17 = {
													let l9 = i32::from(*ptr0.add(6).cast::<u16>());
													let l10 = i32::from(*ptr0.add(8).cast::<u16>());
													let l11 = i32::from(*ptr0.add(10).cast::<u16>());
													let l12 = i32::from(*ptr0.add(12).cast::<u16>());
													let l13 = i32::from(*ptr0.add(14).cast::<u16>());
													let l14 = i32::from(*ptr0.add(16).cast::<u16>());
													let l15 = i32::from(*ptr0.add(18).cast::<u16>());
													let l16 = i32::from(*ptr0.add(20).cast::<u16>());
													(
														l9 as u16,
														l10 as u16,
														l11 as u16,
														l12 as u16,
														l13 as u16,
														l14 as u16,
														l15 as u16,
														l16 as u16,
													)
												};
												V17::Ipv6(e17)
											}
										};
										v17
									};
									Some(e)
								}
								_ => _rt::invalid_enum_discriminant(),
							}
						};
						Ok(e)
					}
					1 => {
						let e = {
							let l18 = i32::from(*ptr0.add(2).cast::<u8>());
							super::super::super::wasi::sockets::network::ErrorCode::_lift(
								l18 as u8,
							)
						};
						Err(e)
					}
					_ => _rt::invalid_enum_discriminant(),
				};
				result19
			}
		}
	}
	impl ResolveAddressStream {
		#[allow(unused_unsafe, clippy::all)]
		/// Create a `pollable` which will resolve once the stream is ready for I/O.
		///
		/// Note: this function is here for WASI 0.2 only.
		/// It's planned to be removed when `future` is natively supported in Preview3.
		#[allow(async_fn_in_trait)]
		pub fn subscribe(&self) -> Pollable {
			unsafe {
				#[cfg(target_arch = "wasm32")]
				#[link(wasm_import_module = "wasi:sockets/ip-name-lookup@0.2.12")]
				unsafe extern "C" {
					#[link_name = "[method]resolve-address-stream.subscribe"]
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
	#[allow(unused_unsafe, clippy::all)]
	/// Resolve an internet host name to a list of IP addresses.
	///
	/// Unicode domain names are automatically converted to ASCII using IDNA encoding.
	/// If the input is an IP address string, the address is parsed and returned
	/// as-is without making any external requests.
	///
	/// See the wasi-socket proposal README.md for a comparison with getaddrinfo.
	///
	/// This function never blocks. It either immediately fails or immediately
	/// returns successfully with a `resolve-address-stream` that can be used
	/// to (asynchronously) fetch the results.
	///
	/// # Typical errors
	/// - `invalid-argument`: `name` is a syntactically invalid domain name or IP address.
	///
	/// # References:
	/// - <https://pubs.opengroup.org/onlinepubs/9699919799/functions/getaddrinfo.html>
	/// - <https://man7.org/linux/man-pages/man3/getaddrinfo.3.html>
	/// - <https://learn.microsoft.com/en-us/windows/win32/api/ws2tcpip/nf-ws2tcpip-getaddrinfo>
	/// - <https://man.freebsd.org/cgi/man.cgi?query=getaddrinfo&sektion=3>
	#[allow(async_fn_in_trait)]
	pub fn resolve_addresses(
		network: &Network,
		name: &str,
	) -> Result<ResolveAddressStream, ErrorCode> {
		unsafe {
			#[repr(align(4))]
			struct RetArea([::core::mem::MaybeUninit<u8>; 8]);
			let mut ret_area = RetArea([::core::mem::MaybeUninit::uninit(); 8]);
			let vec0 = name;
			let ptr0 = vec0.as_ptr().cast::<u8>();
			let len0 = vec0.len();
			let ptr1 = ret_area.0.as_mut_ptr().cast::<u8>();
			#[cfg(target_arch = "wasm32")]
			#[link(wasm_import_module = "wasi:sockets/ip-name-lookup@0.2.12")]
			unsafe extern "C" {
				#[link_name = "resolve-addresses"]
				fn wit_import2(_: i32, _: *mut u8, _: usize, _: *mut u8);
			}
			#[cfg(not(target_arch = "wasm32"))]
			unsafe extern "C" fn wit_import2(_: i32, _: *mut u8, _: usize, _: *mut u8) {
				unreachable!()
			}
			wit_import2((network).handle() as i32, ptr0.cast_mut(), len0, ptr1);
			let l3 = i32::from(*ptr1.add(0).cast::<u8>());
			let result6 = match l3 {
				0 => {
					let e = {
						let l4 = *ptr1.add(4).cast::<i32>();
						ResolveAddressStream::from_handle(l4 as u32)
					};
					Ok(e)
				}
				1 => {
					let e = {
						let l5 = i32::from(*ptr1.add(4).cast::<u8>());
						super::super::super::wasi::sockets::network::ErrorCode::_lift(
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
