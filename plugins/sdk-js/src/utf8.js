// QuickJS has neither TextEncoder nor TextDecoder.

const REPLACEMENT = 0xfffd;
/** Of a sequence by its length: the first byte's mark, and the smallest character that needs as many bytes. */
const MARKS = [0, 0, 0xc0, 0xe0, 0xf0];
const SMALLEST = [0, 0, 0x80, 0x800, 0x10000];

/** A text's bytes; a lone surrogate becomes U+FFFD. */
export function encode(text) {
  const binary = unescape(encodeURIComponent(text.toWellFormed()));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

/** The text of bytes; what is no UTF-8 becomes U+FFFD. */
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

/** The character that begins there, and how many bytes it takes. */
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
