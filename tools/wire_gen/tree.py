# The decision tree. It mirrors lib/wire/dissect.h; the layouts above are generated.

_ATOMIC = {3, 4, 13, 14}
_RENDEZVOUS = {6, 10, 0x35, 0x36}
_SES_FORMS = {1: UetSmall, 2: UetMedium, 4: UetResponse, 5: UetResponseData, 6: UetResponseDataSmall}


def pds_class(data):
    """The class of the PDS or TSS header that `data` begins with, Raw if there is none."""
    if len(data) < 4:
        return Raw
    kind = data[0] >> 3
    syn = bool(data[1] & 4)
    if kind == 1:
        return UetTssSsi if data[0] & 4 else UetTss
    if kind in (2, 3):
        return UetRequestSyn if syn else UetRequest
    if kind in (13, 14):
        return UetRequestCcSyn if syn else UetRequestCc
    if kind == 8:
        cc_type = data[12] >> 4 if len(data) > 12 else 0
        return {0: UetAckCcNscc, 1: UetAckCcCredit}.get(cc_type, UetAckCcOther)
    if kind == 11:
        return UetControlSyn if syn else UetControl
    if kind == 31:
        return UetReturnPort
    return {4: UetRudi, 5: UetRudi, 6: UetUud, 7: UetAck, 9: UetAckCcx, 10: UetNack, 12: UetNackCcx}.get(kind, Raw)


def ses_class(next_hdr, data):
    """The class of the SES header that follows, Raw if there is none."""
    if next_hdr != 3:
        return _SES_FORMS.get(next_hdr, Raw)
    if len(data) < 2:
        return Raw
    opcode, som = data[0] & 0x3F, data[1] & 1
    if opcode in (8, 11):
        return UetDeferrableSom1 if som else UetDeferrableSom0
    if opcode == 12:
        return UetReadyToRestart
    if 0x31 <= opcode <= 0x36:
        return UetSequencedSom1 if som else UetSequencedSom0
    return UetStandardSom1 if som else UetStandardSom0


def ext_class(ses, data):
    """The class of the extension behind a request, Raw if there is none."""
    opcode = ses.opcode
    if opcode in _ATOMIC and data:
        return UetCompareSwap if 0x0D <= data[0] <= 0x13 else UetAtomic
    if opcode in _RENDEZVOUS and ("standard" in ses.form or "sequenced" in ses.form):
        return UetRendezvous
    return Raw


class _Start(UetHeader):
    """Chooses the header that a UET packet begins with."""

    @classmethod
    def dispatch_hook(cls, _pkt=None, *args, **kargs):
        return pds_class(_pkt) if _pkt else cls

    fields_desc = []


def _guess_ses(self, data):
    if self.form == "ack" and self.flag_epsn and self.next_hdr == 0 and len(data) >= 4:
        return UetExpectedPsn
    return ses_class(self.next_hdr, data)


for _c in (UetRequest, UetRequestSyn, UetRequestCc, UetRequestCcSyn, UetAck, UetAckCcNscc, UetAckCcCredit,
           UetAckCcOther, UetAckCcx, UetRudi, UetUud):
    _c.guess_payload_class = _guess_ses
for _c in (UetSmall, UetMedium, UetStandardSom1, UetStandardSom0, UetSequencedSom1, UetSequencedSom0):
    _c.guess_payload_class = ext_class
for _c in (UetNack, UetNackCcx, UetControl, UetControlSyn, UetTss, UetTssSsi, UetDeferrableSom1, UetDeferrableSom0,
           UetReadyToRestart, UetResponse, UetResponseData, UetResponseDataSmall, UetAtomic, UetCompareSwap,
           UetRendezvous, UetExpectedPsn):
    _c.guess_payload_class = lambda self, data: Raw
UetEntropy.guess_payload_class = UetReturnPort.guess_payload_class = lambda self, data: pds_class(data)

UDP_PORT = 4793
IP_PROTOCOL = 253

for _port in (*range(0x5000, 0x5100), UDP_PORT):  # the former of processes that share an address
    bind_layers(UDP, _Start, dport=_port)
    UDP.payload_guess.insert(0, UDP.payload_guess.pop())  # every source port is an entropy value, also one of another protocol
bind_layers(IP, UetEntropy, proto=IP_PROTOCOL)
bind_layers(IPv6, UetEntropy, nh=IP_PROTOCOL)
