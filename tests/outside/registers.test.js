// A third-party client works with the simulator of an identity register.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { sandbox } from './sandbox.js';

const SCRIPT = fileURLToPath(new URL('registers.py', import.meta.url));

/** Calls PyPI's dojah-python-sdk. Returns its result. */
function dojah(api, name, args) {
  const input = JSON.stringify({ url: `${sandbox.sandbox}/dojah`, api, function: name, arguments: args });
  const { stdout, stderr } = spawnSync(process.env.PYTHON ?? 'python3', [SCRIPT], { input, encoding: 'utf8' });
  assert.ok(stdout, stderr);
  return JSON.parse(stdout);
}

/** A picture in base64. */
async function picture(name) {
  const response = await fetch(`${sandbox.sandbox}/images/${name}.jpg`);
  return Buffer.from(await response.arrayBuffer()).toString('base64');
}

test('dojah-python-sdk looks people up', () => {
  const lookups = [
    ['nigeria_kyc', 'get_basic_bvn', { bvn: 22222222222 }, 'bvn.value', '22222222222'],
    ['nigeria_kyc', 'get_basic_bvn1', { bvn: 22222222222 }, 'last_name', 'Eze'],
    ['nigeria_kyc', 'get_normal_bvn', { bvn: 22222222222 }, 'email', '22222222222@people.example'],
    ['nigeria_kyc', 'get_premium_bvn', { bvn: 22222222222 }, 'watch_listed', 'NO'],
    ['nigeria_kyc', 'get_nin', { nin: 70123456789 }, 'birth_date', '10-06-1993'],
    ['nigeria_kyc', 'get_nin', { nin: 22222226666 }, 'email', null],
    ['nigeria_kyc', 'get_vnin', { vnin: 'AA1234567890123B' }, 'surname', 'Abdullahi'],
    ['nigeria_kyc', 'get_drivers_license', { license_number: 'AAD23208212298' }, 'personal_details.birth_date', '21/12/1999'],
    ['nigeria_kyc', 'get_passport', { passport_number: 'A00400000', surname: 'test' }, 'surname', 'Test'],
    ['nigeria_kyc', 'get_phone_number', { phone_number: 8082838283 }, 'msisdn', '2348082838283'],
    ['nigeria_kyc', 'get_basic_phone_number', { phone_number: 8082838283 }, 'lastName', 'Yusuf'],
    ['kyc', 'get_vin', { vin: '987f545AJ67890' }, 'full_name', 'FUNKE YETUNDE ALABI'],
    ['kyb', 'get_cac', { rc_number: 1092932, company_name: 'any' }, 'rc_number', '1092932'],
    ['gh_kyc', 'get_drivers_license', { id: 'V0004512', full_name: 'any' }, 'is_full_name_match', false],
    ['gh_kyc', 'get_passport', { id: 'G0000575', first_name: 'Akua' }, 'is_first_name_match', true],
    ['gh_kyc', 'get_ssnit', { id: 'C987464748983' }, 'gender', 'Male'],
    ['gh_kyc', 'get_voter', { id: 9001332866, is_new_id: true }, 'gender', 'Female'],
  ];
  for (const [api, name, args, at, expected] of lookups) {
    const { entity, ...refusal } = dojah(api, name, args);
    assert.deepEqual(refusal, {}, name);
    assert.equal(at.split('.').reduce((value, key) => value[key], entity), expected, name);
  }
});

test('dojah-python-sdk compares faces', async () => {
  for (const [name, match] of [['match', true], ['mismatch', false]]) {
    const selfie_image = await picture(`${name}-1`);
    const calls = [
      ['verifications', 'verify_selfie_bvn', { bvn: '22222222222', selfie_image }, 'selfie_verification'],
      ['verifications', 'verify_selfie_nin', { nin: '70123456789', selfie_image }, 'selfie_verification'],
      ['verifications', 'verify_selfie_vnin', { vnin: 'AA1234567890123B', selfie_image }, 'selfie_verification'],
      ['ml', 'verify_photo_id_with_selfie', { selfie_image, photoid_image: await picture('document-1') }, 'selfie'],
    ];
    for (const [api, call, args, at] of calls) assert.equal(dojah(api, call, args).entity[at].match, match, call);
  }
});

test('dojah-python-sdk receives errors', () => {
  const failures = [
    [{ bvn: 22222220000 }, 404, 'Result Not Found'],
    [{ bvn: 22222299999 }, 424, 'The source is not available now, try again later'],
    [{ bvn: 2222 }, 400, 'bvn is not valid'],
    [{}, 400, 'bvn is required'],
  ];
  for (const [args, status, error] of failures) {
    assert.deepEqual(dojah('nigeria_kyc', 'get_normal_bvn', args), { status, error });
  }
});
