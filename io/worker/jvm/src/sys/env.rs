// SPDX-License-Identifier: Apache-2.0
//! A thread's view of the JVM: the functions of JNI's table, with exceptions as errors and strings cut to a bound.

use std::ffi::{CStr, CString};
use std::ptr::null_mut;
use std::sync::atomic::AtomicU64;

use jni_sys::{
    JNIEnv, jarray, jbyteArray, jclass, jint, jlong, jlongArray, jmethodID, jobject, jobjectArray, jsize, jstring,
    jvalue,
};

/// Characters of an exception's text.
const THROWN_CHARS_MAX: usize = 400;

/// What Java code threw: the exception's own text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Thrown(pub String);

/// The functions of JNI for the thread that holds this, which is attached.
#[derive(Clone, Copy)]
pub(super) struct Env(*mut JNIEnv);

macro_rules! jni {
    ($env:expr, $function:ident $(, $argument:expr)*) => {{
        let env: *mut JNIEnv = $env.0;
        ((**env).v1_6.$function)(env $(, $argument)*)
    }};
}

impl Env {
    /// Takes the pointer that JNI gave to this thread.
    ///
    /// # Safety
    /// It came from JNI on this thread, and the thread stays attached as long as this is used.
    pub(super) unsafe fn new(env: *mut JNIEnv) -> Env {
        Env(env)
    }

    /// Takes the exception that is pending, if one is.
    #[inline]
    pub(super) fn check(self) -> Result<(), Thrown> {
        // SAFETY: `self` is this thread's table, as all `SAFETY` lines of this file go on to say.
        let pending = unsafe { jni!(self, ExceptionCheck) };
        if pending { Err(self.take_exception()) } else { Ok(()) }
    }

    /// Runs `work`, and forgets the objects it made.
    pub(super) fn framed<T>(self, work: impl FnOnce() -> Result<T, Thrown>) -> Result<T, Thrown> {
        const OBJECTS: i32 = 32;
        // SAFETY: this thread's table.
        if unsafe { jni!(self, PushLocalFrame, OBJECTS) } != 0 {
            return Err(self.take_exception());
        }
        let result = work();
        // SAFETY: the frame is the one from above, and no object of it is in `T`, which is no reference.
        unsafe { jni!(self, PopLocalFrame, null_mut()) };
        result
    }

    pub(super) fn class(self, name: &CStr) -> Result<jclass, Thrown> {
        // SAFETY: this thread's table, and a name that ends with a zero.
        let class = unsafe { jni!(self, FindClass, name.as_ptr()) };
        self.check().map(|()| class)
    }

    /// Returns a reference to the same object that lasts until the process ends.
    pub(super) fn kept(self, object: jobject) -> Result<jobject, Thrown> {
        // SAFETY: this thread's table, and an object that it gave.
        let kept = unsafe { jni!(self, NewGlobalRef, object) };
        if kept.is_null() { Err(Thrown("no memory for a reference".to_owned())) } else { Ok(kept) }
    }

    pub(super) fn static_method(self, class: jclass, name: &CStr, signature: &CStr) -> Result<jmethodID, Thrown> {
        // SAFETY: this thread's table, a class that it gave, and names that end with a zero.
        let method = unsafe { jni!(self, GetStaticMethodID, class, name.as_ptr(), signature.as_ptr()) };
        self.check().map(|()| method)
    }

    /// Binds native methods of `class` to functions.
    ///
    /// # Safety
    /// The functions have the types that their signatures say.
    pub(super) unsafe fn register(self, class: jclass, natives: &[jni_sys::JNINativeMethod]) -> Result<(), Thrown> {
        let count = jsize::try_from(natives.len()).expect("few methods");
        // SAFETY: this thread's table, a class that it gave, so many methods, and what the caller says of them.
        unsafe { jni!(self, RegisterNatives, class, natives.as_ptr(), count) };
        self.check()
    }

    /// # Safety
    /// The method is one of the class, and takes `arguments`.
    pub(super) unsafe fn call_void(self, class: jclass, method: jmethodID, arguments: &[jvalue]) -> Result<(), Thrown> {
        // SAFETY: this thread's table, and what the caller says.
        unsafe { jni!(self, CallStaticVoidMethodA, class, method, arguments.as_ptr()) };
        self.check()
    }

    /// # Safety
    /// The method is one of the class, takes `arguments`, and returns an `int`.
    #[inline]
    pub(super) unsafe fn call_int(self, class: jclass, method: jmethodID, arguments: &[jvalue]) -> Result<i32, Thrown> {
        // SAFETY: this thread's table, and what the caller says.
        let result = unsafe { jni!(self, CallStaticIntMethodA, class, method, arguments.as_ptr()) };
        self.check().map(|()| result)
    }

    /// # Safety
    /// The method is one of the class, takes `arguments`, and returns a `long`.
    pub(super) unsafe fn call_long(
        self,
        class: jclass,
        method: jmethodID,
        arguments: &[jvalue],
    ) -> Result<i64, Thrown> {
        // SAFETY: this thread's table, and what the caller says.
        let result = unsafe { jni!(self, CallStaticLongMethodA, class, method, arguments.as_ptr()) };
        self.check().map(|()| result)
    }

    pub(super) fn string(self, text: &str) -> Result<jstring, Thrown> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let length = jsize::try_from(units.len()).map_err(|_| Thrown("a string is too long".to_owned()))?;
        // SAFETY: this thread's table, and so many units, which are copied.
        let string = unsafe { jni!(self, NewString, units.as_ptr(), length) };
        self.check().map(|()| string)
    }

    pub(super) fn strings<'a>(self, texts: impl ExactSizeIterator<Item = &'a str>) -> Result<jobjectArray, Thrown> {
        let class = self.class(c"java/lang/String")?;
        let length = jsize::try_from(texts.len()).map_err(|_| Thrown("an array is too long".to_owned()))?;
        // SAFETY: this thread's table, and a class that it gave.
        let array = unsafe { jni!(self, NewObjectArray, length, class, null_mut()) };
        self.check()?;
        for (index, text) in (0..length).zip(texts) {
            let string = self.string(text)?;
            // SAFETY: this thread's table, an array of strings of that length, and a string.
            unsafe { jni!(self, SetObjectArrayElement, array, index, string) };
            self.check()?;
            // SAFETY: this thread's table, and a reference that nothing uses any more: the array has its own.
            unsafe { jni!(self, DeleteLocalRef, string) };
        }
        Ok(array)
    }

    pub(super) fn longs(self, values: &[jlong]) -> Result<jlongArray, Thrown> {
        let length = jsize::try_from(values.len()).map_err(|_| Thrown("an array is too long".to_owned()))?;
        // SAFETY: this thread's table.
        let array = unsafe { jni!(self, NewLongArray, length) };
        self.check()?;
        // SAFETY: this thread's table, and an array of that length.
        unsafe { jni!(self, SetLongArrayRegion, array, 0, length, values.as_ptr()) };
        self.check().map(|()| array)
    }

    /// Returns a direct buffer over memory that lasts as long as the process.
    pub(super) fn buffer(self, words: &'static [AtomicU64]) -> Result<jobject, Thrown> {
        let bytes = jlong::try_from(size_of_val(words)).expect("a mapping is smaller than 2^63 bytes");
        let start = words.as_ptr().cast_mut().cast();
        // SAFETY: this thread's table. The memory is never unmapped, may be written through shared references, and any
        // bytes are valid in it. Java code does with it what it likes, inside its bounds.
        let buffer = unsafe { jni!(self, NewDirectByteBuffer, start, bytes) };
        self.check()?;
        if buffer.is_null() { Err(Thrown("this JVM has no direct buffers".to_owned())) } else { Ok(buffer) }
    }

    /// Returns at most so many UTF-16 units of a string; nothing for `null`.
    ///
    /// # Safety
    /// `string` is a string or `null`, given to this thread.
    pub(super) unsafe fn text(self, string: jstring, units_max: usize) -> String {
        if string.is_null() {
            return String::new();
        }
        // SAFETY: this thread's table, and a string.
        let whole = unsafe { jni!(self, GetStringLength, string) };
        let length = usize::try_from(whole).unwrap_or(0).min(units_max);
        let mut units = vec![0_u16; length];
        let length = jsize::try_from(length).unwrap_or(0);
        // SAFETY: this thread's table, a string of at least that length, and room for as many units.
        unsafe { jni!(self, GetStringRegion, string, 0, length, units.as_mut_ptr()) };
        String::from_utf16_lossy(&units)
    }

    /// # Safety
    /// `array` is an array, given to this thread.
    pub(super) unsafe fn array_length(self, array: jarray) -> usize {
        // SAFETY: this thread's table, and an array.
        let length = unsafe { jni!(self, GetArrayLength, array) };
        usize::try_from(length).unwrap_or(0)
    }

    /// Returns at most so many elements of an array; none for `null`.
    ///
    /// # Safety
    /// `array` is a `long[]` or `null`, given to this thread.
    pub(super) unsafe fn long_values(self, array: jlongArray, count_max: usize) -> Vec<jlong> {
        if array.is_null() {
            return Vec::new();
        }
        // SAFETY: an array, as the caller says.
        let length = unsafe { self.array_length(array) }.min(count_max);
        let mut values = vec![0; length];
        // SAFETY: this thread's table, an array of at least that length, and room for as many elements.
        unsafe { jni!(self, GetLongArrayRegion, array, 0, jsize::try_from(length).unwrap_or(0), values.as_mut_ptr()) };
        values
    }

    /// Copies bytes out of an array.
    ///
    /// # Errors
    /// There is no array, or it has no such range.
    ///
    /// # Safety
    /// `array` is a `byte[]` or `null`, given to this thread.
    pub(super) unsafe fn bytes_from(self, array: jbyteArray, start: jint, into: &mut [u8]) -> Result<(), Thrown> {
        let length = jsize::try_from(into.len()).map_err(|_| Thrown("an array is too long".to_owned()))?;
        if array.is_null() {
            return Err(Thrown("no array".to_owned()));
        }
        // SAFETY: this thread's table, an array, whose range the JVM checks, and room for so many bytes.
        unsafe { jni!(self, GetByteArrayRegion, array, start, length, into.as_mut_ptr().cast()) };
        self.check()
    }

    /// Copies bytes into an array.
    ///
    /// # Errors
    /// As [`Env::bytes_from`].
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn bytes_into(self, array: jbyteArray, start: jint, bytes: &[u8]) -> Result<(), Thrown> {
        let length = jsize::try_from(bytes.len()).map_err(|_| Thrown("an array is too long".to_owned()))?;
        if array.is_null() {
            return Err(Thrown("no array".to_owned()));
        }
        // SAFETY: this thread's table, an array, whose range the JVM checks, and so many bytes, which are copied.
        unsafe { jni!(self, SetByteArrayRegion, array, start, length, bytes.as_ptr().cast()) };
        self.check()
    }

    /// Returns a new array; nothing if there is no memory for one, of which an exception tells that is left pending.
    pub(super) fn new_bytes(self, bytes: &[u8]) -> Option<jbyteArray> {
        let length = jsize::try_from(bytes.len()).ok()?;
        // SAFETY: this thread's table.
        let array = unsafe { jni!(self, NewByteArray, length) };
        if array.is_null() {
            return None;
        }
        // SAFETY: an array of that length.
        unsafe { self.bytes_into(array, 0, bytes) }.ok().map(|()| array)
    }

    /// Throws an exception of a class that has a constructor for a text.
    pub(super) fn throw(self, class: &CStr, text: &str) {
        let text = CString::new(text).unwrap_or_default();
        if let Ok(class) = self.class(class) {
            // SAFETY: this thread's table, a class that it gave, and a text that ends with a zero.
            unsafe { jni!(self, ThrowNew, class, text.as_ptr()) };
        }
    }

    /// Throws a `BlockException` with the code of that name.
    pub(super) fn throw_block(self, code: &CStr, text: &str) -> Result<(), Thrown> {
        let class = self.class(c"org/netserv/block/BlockException")?;
        let codes = self.class(c"org/netserv/block/BlockException$Code")?;
        let kind = c"Lorg/netserv/block/BlockException$Code;";
        let made = c"(Lorg/netserv/block/BlockException$Code;Ljava/lang/String;)V";
        let text = self.string(text)?;
        // SAFETY: this thread's table and classes that it gave; the field and the constructor are of these types, and none
        // is used that is not there.
        unsafe {
            let field = jni!(self, GetStaticFieldID, codes, code.as_ptr(), kind.as_ptr());
            self.check()?;
            let code = jni!(self, GetStaticObjectField, codes, field);
            let constructor = jni!(self, GetMethodID, class, c"<init>".as_ptr(), made.as_ptr());
            self.check()?;
            let exception =
                jni!(self, NewObjectA, class, constructor, [jvalue { l: code }, jvalue { l: text }].as_ptr());
            self.check()?;
            jni!(self, Throw, exception);
        }
        Ok(())
    }

    /// Returns at most so many strings of an array, each cut; none for `null`, and empty ones for `null` in it.
    ///
    /// # Safety
    /// `array` is a `String[]` or `null`, given to this thread.
    pub(super) unsafe fn texts(self, array: jobjectArray, count_max: usize, units_max: usize) -> Vec<String> {
        if array.is_null() {
            return Vec::new();
        }
        // SAFETY: an array, as the caller says.
        let length = unsafe { self.array_length(array) }.min(count_max);
        let mut texts = Vec::with_capacity(length);
        for index in 0..jsize::try_from(length).unwrap_or(0) {
            // SAFETY: this thread's table, and an array of at least that length.
            let string = unsafe { jni!(self, GetObjectArrayElement, array, index) };
            // SAFETY: an element of a `String[]` is a string or `null`.
            texts.push(unsafe { self.text(string, units_max) });
            // SAFETY: this thread's table, and a reference that nothing uses any more, or `null`.
            unsafe { jni!(self, DeleteLocalRef, string) };
        }
        texts
    }

    #[cold]
    fn take_exception(self) -> Thrown {
        const UNKNOWN: &str = "an exception without a text";
        // SAFETY: this thread's table. With the exception cleared, all functions may be called again. What `toString`
        // returns is a string or `null`.
        unsafe {
            let thrown = jni!(self, ExceptionOccurred);
            jni!(self, ExceptionClear);
            if thrown.is_null() {
                return Thrown(UNKNOWN.to_owned());
            }
            let class = jni!(self, GetObjectClass, thrown);
            let method = jni!(self, GetMethodID, class, c"toString".as_ptr(), c"()Ljava/lang/String;".as_ptr());
            let text =
                if method.is_null() { null_mut() } else { jni!(self, CallObjectMethodA, thrown, method, [].as_ptr()) };
            let failed = jni!(self, ExceptionCheck);
            jni!(self, ExceptionClear);
            let text = if failed { String::new() } else { self.text(text, THROWN_CHARS_MAX) };
            Thrown(if text.is_empty() { UNKNOWN.to_owned() } else { text })
        }
    }
}
