/** The page of a report: the same screens, with answers that stand in the file itself. */
import './look/look.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { startKeys } from './shell/keys.ts';
import { createReportSource } from './shell/report-source.ts';
import { followLinks, keepInHash } from './shell/router.ts';
import { about, failureOf, setSource, source, troubleAtStart } from './shell/source.ts';
import { startTheme } from './shell/theme.ts';

startTheme();
startKeys();
keepInHash();
followLinks();
setSource(createReportSource());

const root = document.getElementById('app');

source()
  .json<NonNullable<typeof about.value>>('about', new AbortController().signal)
  .then((told) => {
    about.value = told;
  })
  .catch((error) => {
    troubleAtStart.value = failureOf(error);
  })
  .then(() => {
    // Not before: what a report has not is never asked for.
    if (root !== null) render(<App />, root);
  });
