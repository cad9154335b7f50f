// The manifest's place in a component: a custom section behind all others.

const NAME = Buffer.from('tollhouse:manifest');

/** Component and manifest as one. */
export function packed(component, manifest) {
  const section = Buffer.concat([leb(NAME.length), NAME, manifest]);
  return Buffer.concat([component, Buffer.of(0), leb(section.length), section]);
}

/** A number as WebAssembly writes it: seven bits to a byte, the lowest first. */
function leb(number) {
  const bytes = [];
  for (; number > 0x7f; number >>>= 7) bytes.push((number & 0x7f) | 0x80);
  return Buffer.from([...bytes, number]);
}
