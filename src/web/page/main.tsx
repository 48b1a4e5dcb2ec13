import './look/look.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { createHttpSource, takeToken } from './shell/http-source.ts';
import { startKeys } from './shell/keys.ts';
import { startLive } from './shell/live.ts';
import { followLinks } from './shell/router.ts';
import { about, failureOf, setSource, source, troubleAtStart } from './shell/source.ts';
import { startTheme } from './shell/theme.ts';

takeToken();
startTheme();
startKeys();
followLinks();
setSource(createHttpSource());

// Before the screens ask: what changes after this answer is told.
source()
  .json<NonNullable<typeof about.value>>('about', new AbortController().signal)
  .then((told) => {
    about.value = told;
    startLive();
  })
  .catch((error) => {
    troubleAtStart.value = failureOf(error);
  });

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
