// UTF-8 conversion, because QuickJS has neither TextEncoder nor TextDecoder.

const REPLACEMENT = 0xfffd;
/**
 * By length of a sequence: the marker bits of its first byte, and the smallest code point that
 * needs this length.
 */
const MARKS = [0, 0, 0xc0, 0xe0, 0xf0];
const SMALLEST = [0, 0, 0x80, 0x800, 0x10000];

/** Encodes a text; lone surrogates become U+FFFD. */
export function encode(text) {
  const binary = unescape(encodeURIComponent(text.toWellFormed()));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

/** Decodes bytes; invalid UTF-8 becomes U+FFFD. */
export function decode(bytes) {
  const parts = [];
  for (let at = 0; at < bytes.length; ) {
    const chars = [];
    while (at < bytes.length && chars.length < 4096) {
      const [char, length] = charAt(bytes, at);
      chars.push(char);
      at += length;
    }
    parts.push(String.fromCodePoint(...chars));
  }
  return parts.join('');
}

/** Returns the code point at an offset, and its length in bytes. */
function charAt(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return [first, 1];
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  let char = first - MARKS[length];
  for (let n = 1; n < length; n += 1) {
    const next = bytes[at + n];
    if ((next & 0xc0) !== 0x80) return [REPLACEMENT, 1];
    char = char * 64 + (next & 0x3f);
  }
  const surrogate = char >= 0xd800 && char <= 0xdfff;
  const fits = char >= SMALLEST[length] && char <= 0x10ffff && !surrogate;
  return fits ? [char, length] : [REPLACEMENT, 1];
}
