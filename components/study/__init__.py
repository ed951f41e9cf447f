"""The human study: do people recognise concepts, and do the names fit (paper appendix D)?"""
