// Words for operators: what an upstream said, made fit for a log.

const MESSAGE_CHARS = 160;
const CODE_CHARS = 64;

/**
 * An upstream's text, cut to 160 characters, with everything taken out that looks like an e-mail address, a number of a person or
 * an account, or a code that could be a token.
 */
export function short(told) {
  const words = String(told).split(/\s+/).filter(Boolean);
  const kept = [...words.map((word) => (isPrivate(word) ? '[...]' : word)).join(' ')];
  return kept.length > MESSAGE_CHARS ? `${kept.slice(0, MESSAGE_CHARS).join('')}...` : kept.join('');
}

/** An upstream's error code: letters, digits and `-_.:` only, at most 64 of them. */
export const code = (told) => String(told).replace(/[^A-Za-z0-9_.:-]/g, '').slice(0, CODE_CHARS);

function isPrivate(word) {
  const digits = word.replace(/[^0-9]/g, '').length;
  const chars = [...word].length;
  return word.includes('@') || digits >= 6 || chars > 32 || (digits > 0 && chars >= 10);
}
