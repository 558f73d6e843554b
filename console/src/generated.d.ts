/** What each setting means, by name; the build takes it from the reference of the settings. */
declare module "setting-meanings" {
  const meanings: Readonly<Record<string, string>>;
  export default meanings;
}
