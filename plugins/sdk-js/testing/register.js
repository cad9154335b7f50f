// `node --import tollhouse-plugin/testing/register --test`: what a component would import from its host comes from the fake one.

import { register } from 'node:module';

register('./hooks.js', import.meta.url);
