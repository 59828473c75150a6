"use strict";
// In the head: the first view is asked for while the rest of the page is still read.
const proxied = "proxied" in document.documentElement.dataset; // a proxy adds the token to each request
let token = proxied ? "" : sessionStorage.getItem("token") || "";
const headers = () => (token ? { Authorization: `Bearer ${token}` } : {});
const ask = (last) => fetch("/explain/live", { headers: { ...headers(), "Last-Event-ID": last }, cache: "no-store" });
let early = token || proxied ? ask("") : null;
early?.catch(() => {}); // the page says so when it waits for it
