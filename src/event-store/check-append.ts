/** What every adapter refuses before it sends anything, so that all stores take the same appends. (failure scenarios 14, 29) */
import type { EventBytes } from '../kernel/event.ts';
import { appendBytes, AppendTooLarge, maxAppendBytes, noStream } from './event-store.ts';

/** An append that no store could give back byte for byte: a fault of the program, nothing was stored. */
export class UnstorableAppend extends Error {
  override readonly name = 'UnstorableAppend';
}

const maxNameBytes = 500;
const maxRevision = 2 ** 31 - 1;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const refuse = (what: string): never => {
  throw new UnstorableAppend(what);
};

const checkText = (what: string, text: string): void => {
  if (text.includes('\0')) refuse(`${what} contains a NUL character`);
  if (!text.isWellFormed()) refuse(`${what} contains a lone surrogate`);
};

const checkName = (what: string, name: string): void => {
  checkText(what, name);
  if (name === '' || Buffer.byteLength(name) > maxNameBytes) refuse(`${what} is not between 1 and ${maxNameBytes} bytes`);
};

/** @throws UnstorableAppend, AppendTooLarge */
export const checkAppend = (stream: string, expectedRevision: number, events: readonly EventBytes[]): void => {
  checkName('The stream name', stream);
  if (stream.startsWith('$')) refuse(`The stream name ${stream} is reserved for the store itself`);
  if (events.length === 0) refuse(`An append to ${stream} holds no events`);
  if (!Number.isInteger(expectedRevision) || expectedRevision < noStream || expectedRevision + events.length > maxRevision)
    refuse(`The expected revision ${expectedRevision} of ${stream} is not a revision`);
  for (const { id, type, data, metadata } of events) {
    if (!uuid.test(id)) refuse(`The event id ${id} is not a UUID in lower case`);
    checkName('The event type', type);
    checkText(`The data of event ${id}`, data);
    checkText(`The metadata of event ${id}`, metadata);
  }
  const bytes = appendBytes(events);
  if (bytes > maxAppendBytes) throw new AppendTooLarge(`An append of ${bytes} bytes to ${stream} exceeds ${maxAppendBytes}`);
};
