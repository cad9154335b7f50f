// Sanitizes upstream messages and codes for logs.

const MESSAGE_CHARS = 160;
const CODE_CHARS = 64;

/**
 * Truncates an upstream's message to 160 characters, and replaces each word that looks like an
 * e-mail address, a personal or account number, or a token with `[...]`.
 */
export function short(text) {
  const words = String(text).split(/\s+/).filter(Boolean);
  const kept = [...words.map((word) => (isPrivate(word) ? '[...]' : word)).join(' ')];
  return kept.length > MESSAGE_CHARS ? `${kept.slice(0, MESSAGE_CHARS).join('')}...` : kept.join('');
}

/** Reduces an upstream's error code to ASCII letters, digits and `-_.:`, at most 64 characters. */
export const code = (text) => String(text).replace(/[^A-Za-z0-9_.:-]/g, '').slice(0, CODE_CHARS);

function isPrivate(word) {
  const digits = word.replace(/[^0-9]/g, '').length;
  const chars = [...word].length;
  return word.includes('@') || digits >= 6 || chars > 32 || (digits > 0 && chars >= 10);
}
